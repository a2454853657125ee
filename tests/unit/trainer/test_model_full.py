"""A model trained in full: published as itself, in bfloat16, and begun from again."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from services.core.errors import ConfigurationError, RoundError
from services.trainer import model
from services.trainer.engine.distributed import ALONE
from services.trainer.model import trained as trained_module
from services.trainer.recipes.recipe import Recipe
from tests import tiny_model as tiny
from tests.unit.trainer.test_model_adapters import logits, shaken


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make(tmp_path_factory.mktemp("tiny"))


def recipe(folder: Path, **fields: Any) -> Recipe:
    return Recipe.model_validate({"name": "t", "base_model": str(folder), "method": "full", **fields})


def opened(folder: Path, champion: Path | None = None) -> Any:
    wanted = recipe(folder)
    base = model.load_base(wanted, model.locate(wanted.base_model, None, folder))
    return model.for_training(base, wanted, champion, folder)


def published(trained: Any, folder: Path) -> Path:
    model.save(trained, folder, ALONE.whole_weights(trained, model.PUBLISHED_DTYPE))
    return folder


def test_all_weights_are_float32_and_trained(tiny_folder: Path) -> None:
    """On the CPU; a GPU's masters are made when the model is split."""
    trained = opened(tiny_folder)
    assert all(one.requires_grad and one.dtype is torch.float32 for one in trained.parameters())


def test_what_is_published_is_a_model_of_its_own(tiny_folder: Path, tmp_path: Path) -> None:
    """bfloat16 safetensors that transformers loads alone, with the logits that were judged."""
    trained = shaken(opened(tiny_folder))
    model.settle(trained)
    folder = published(trained, tmp_path / "out")
    served = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    torch.testing.assert_close(logits(served), logits(trained), atol=1e-5, rtol=1e-5)
    config = json.loads((folder / "config.json").read_text())
    assert (config["dtype"], config["architectures"]) == ("bfloat16", ["LlamaForCausalLM"])
    assert served.config._attn_implementation == "sdpa"
    assert config["use_cache"]
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}


def test_a_next_round_begins_with_the_champions_weights(tiny_folder: Path, tmp_path: Path) -> None:
    """The base is measured first, with its own."""
    first = shaken(opened(tiny_folder))
    model.settle(first)
    champion = published(first, tmp_path / "champion")
    second = opened(tiny_folder, champion)
    base = logits(opened(tiny_folder))
    with model.as_base(second, has_champion=True):
        torch.testing.assert_close(logits(second), base)
    model.begin_from(second, champion)
    torch.testing.assert_close(logits(second), logits(first))


def test_a_large_model_is_published_in_several_files(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With transformers' index; each is a sign of life."""
    monkeypatch.setattr(trained_module, "FILE_BYTES", 100_000)
    written: list[None] = []
    trained = shaken(opened(tiny_folder))
    model.settle(trained)
    weights = ALONE.whole_weights(trained, model.PUBLISHED_DTYPE)
    model.save(trained, tmp_path, weights, on_file=lambda: written.append(None))
    assert len(written) == len(list(tmp_path.glob("*.safetensors"))) > 2
    served = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    torch.testing.assert_close(logits(served), logits(trained), atol=1e-5, rtol=1e-5)
    begun = opened(tiny_folder)
    model.begin_from(begun, tmp_path)
    torch.testing.assert_close(logits(begun), logits(trained))


def test_tied_weights_are_stored_once_and_stay_tied(tiny_folder: Path, tmp_path: Path) -> None:
    """The output layer is the embedding, in the file and after loading."""
    config = AutoModelForCausalLM.from_pretrained(tiny_folder).config
    config.tie_word_embeddings = True
    torch.manual_seed(0)
    tied = AutoModelForCausalLM.from_config(config)
    tied.save_pretrained(tmp_path / "tied")
    trained = shaken(opened(tmp_path / "tied"))
    model.settle(trained)
    served = AutoModelForCausalLM.from_pretrained(published(trained, tmp_path / "out"), dtype=torch.float32)
    assert served.lm_head.weight is served.model.embed_tokens.weight
    torch.testing.assert_close(logits(served), logits(trained), atol=1e-5, rtol=1e-5)


def test_a_champion_of_the_other_kind_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    """A track stays what it began as."""
    with pytest.raises(ConfigurationError, match="of kind model, method lora"):
        lora = recipe(tiny_folder).model_copy(update={"method": "lora"})
        model.for_training(None, lora, published(opened(tiny_folder), tmp_path / "out"), tmp_path)


def test_a_champion_without_a_weight_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    """Another model's folder is named, not half loaded."""
    with pytest.raises(RoundError, match="has no weight"):
        model.begin_from(opened(tiny_folder), tmp_path)


def test_code_that_the_base_named_is_not_carried_along(tmp_path: Path) -> None:
    """transformers keeps `auto_map` where it has the architecture itself; nobody is to be led to it."""
    for name in ("config.json", "tokenizer_config.json"):
        (tmp_path / name).write_text(json.dumps({"auto_map": {"AutoConfig": "x.Y"}, "model_type": "llama"}))
    model.drop_code(tmp_path)
    for name in ("config.json", "tokenizer_config.json"):
        assert json.loads((tmp_path / name).read_text()) == {"model_type": "llama"}
