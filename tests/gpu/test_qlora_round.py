"""A whole QLoRA round on the GPU, with a Qwen2-shaped model of random weights."""

from collections.abc import Callable
from pathlib import Path

import pytest

from services.core.db import Database
from tests.integration.trainer.conftest import Trainer, standard_library
from tests.integration.trainer.test_round import closed, wait_for

SHAPE = {
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 8,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
}


@pytest.fixture(scope="session")
def qwen(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer of Qwen2.5-Coder-1.5B, eight times, with the tiny model's tokenizer."""
    import torch
    from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

    folder = tmp_path_factory.mktemp("qwen")
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen2Config(vocab_size=len(tokenizer), max_position_embeddings=4096, dtype="bfloat16", **SHAPE)
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return folder


@pytest.fixture
def recipe_file(qwen: Path, tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(
        f"base_model: {qwen}\nmethod: qlora\nlora_r: 64\nlora_alpha: 128\nlearning_rate: 5.0e-4\n"
        "max_length: 1024\nbatch_size: 4\ngradient_accumulation_steps: 1\nheld_out_min: 16\n"
        "validation_min: 8\neval_steps: 10\nepochs: 4\ngradient_checkpointing: true\n"
    )
    return path


def test_a_qlora_round_is_promoted_and_loads_as_users_load_it(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database, qwen: Path
) -> None:
    """NF4, 8-bit AdamW, bf16, checkpointing: better than the base; base plus adapter folder generates."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    store(standard_library(200))
    trainer.start()
    (round_, *_) = wait_for(lambda: closed(database), 240)
    print(round_.training, round_.verdict)
    assert round_.state == "promoted", round_.verdict
    current = trainer.adapters / "tiny" / "current"
    wait_for(current.is_symlink)
    base_model = AutoModelForCausalLM.from_pretrained(qwen, dtype=torch.bfloat16, device_map="auto")
    model = PeftModel.from_pretrained(base_model, str(current), dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(str(current))
    inputs = tokenizer("<|im_start|>user\nimport os", return_tensors="pt").to("cuda")
    inputs.pop("token_type_ids", None)
    assert model.generate(**inputs, max_new_tokens=8).shape[1] > inputs["input_ids"].shape[1]
