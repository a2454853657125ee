"""Adapters of every kind: float32 over any base, published for the plain base, gone on from."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from services.core.errors import ConfigurationError
from services.trainer import model
from services.trainer.engine.compute import Compute
from services.trainer.model import pissa
from services.trainer.recipes.recipe import Recipe
from tests import tiny_model as tiny

IDS = torch.arange(3, 40)[None]  # (1, T)
KINDS = {
    "lora": {},
    "rslora": {"use_rslora": True},
    "dora": {"use_dora": True},
    "pissa": {"init_lora_weights": "pissa"},
    "rslora and pissa": {"use_rslora": True, "init_lora_weights": "pissa"},
}


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make(tmp_path_factory.mktemp("tiny"))


def recipe(folder: Path, **fields: Any) -> Recipe:
    defaults = {"name": "t", "base_model": str(folder), "method": "lora", "lora_r": 4, "lora_alpha": 8}
    return Recipe.model_validate({**defaults, **fields})


def opened(recipe_: Recipe, start: Path, champion: Path | None = None) -> Any:
    base = model.load_base(recipe_, model.locate(recipe_.base_model, None, start))
    return model.for_training(base, recipe_, champion, start)


def shaken(trained: Any, seed: int = 1) -> Any:
    """Trained, as far as these tests care: every trainable weight is another."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in trained.parameters():
            if parameter.requires_grad:
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return trained


@torch.no_grad()
def logits(trained: Any) -> torch.Tensor:
    return trained.eval()(IDS).logits


def plain(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder)


@pytest.mark.parametrize("fields", KINDS.values(), ids=KINDS)
def test_a_published_adapter_gives_the_trained_models_logits_on_the_plain_base(
    fields: dict[str, Any], tiny_folder: Path, tmp_path: Path
) -> None:
    """Loaded by PEFT itself, without anything of ours."""
    trained = shaken(opened(recipe(tiny_folder, **fields), tmp_path / "start"))
    model.save(trained, tmp_path / "out", {}, tmp_path / "start")
    served = PeftModel.from_pretrained(plain(tiny_folder), str(tmp_path / "out"))
    expected = logits(trained)
    assert (logits(plain(tiny_folder)) - expected).abs().max() > 0.1
    torch.testing.assert_close(logits(served), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("fields", KINDS.values(), ids=KINDS)
def test_a_fresh_adapter_is_the_base(fields: dict[str, Any], tiny_folder: Path, tmp_path: Path) -> None:
    """So that the base can be measured with the model that is then trained."""
    trained = opened(recipe(tiny_folder, **fields), tmp_path)
    with model.as_base(trained, has_champion=False):
        torch.testing.assert_close(logits(trained), logits(plain(tiny_folder)), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("fields", KINDS.values(), ids=KINDS)
def test_a_next_round_goes_on_from_the_champion(
    fields: dict[str, Any], tiny_folder: Path, tmp_path: Path
) -> None:
    """It begins with the champion's logits, has the base's without it, and publishes what it trains."""
    wanted = recipe(tiny_folder, **fields)
    first = shaken(opened(wanted, tmp_path / "start"))
    champion = tmp_path / "champion"
    model.save(first, champion, {}, tmp_path / "start")
    second = opened(wanted, tmp_path / "start of the second", champion)
    torch.testing.assert_close(logits(second), logits(first), atol=1e-4, rtol=1e-4)
    with model.as_base(second, has_champion=True):
        torch.testing.assert_close(logits(second), logits(plain(tiny_folder)), atol=1e-5, rtol=1e-5)
    trainable = [parameter for parameter in second.parameters() if parameter.requires_grad]
    assert trainable
    assert {parameter.dtype for parameter in trainable} == {torch.float32}
    model.save(shaken(second, 2), tmp_path / "out", {}, tmp_path / "start of the second")
    served = PeftModel.from_pretrained(plain(tiny_folder), str(tmp_path / "out"))
    torch.testing.assert_close(logits(served), logits(second), atol=1e-4, rtol=1e-4)


def test_pissa_resumes_with_what_it_began_with(tiny_folder: Path, tmp_path: Path) -> None:
    """Another process finds the same adapters and the same base, whatever its random numbers are."""
    wanted = recipe(tiny_folder, init_lora_weights="pissa")
    first = opened(wanted, tmp_path).state_dict()
    torch.manual_seed(99)
    second = opened(wanted, tmp_path).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_pissa_takes_the_largest_singular_values(tiny_folder: Path, tmp_path: Path) -> None:
    """What the base has left has no more than the next one."""
    before = plain(tiny_folder).model.layers[0].mlp.up_proj.weight.detach()
    trained = opened(recipe(tiny_folder, init_lora_weights="pissa"), tmp_path)
    left = trained.get_base_model().model.layers[0].mlp.up_proj.base_layer.weight.detach()
    values = torch.linalg.svdvals(before)
    assert float(torch.linalg.svdvals(left)[0]) == pytest.approx(float(values[4]), rel=0.02)


@pytest.mark.parametrize("refused", [{"method": "qlora"}, {"use_dora": True}, {"lora_r": 60}])
def test_pissa_is_refused_where_it_cannot_be_undone(
    refused: dict[str, Any], tiny_folder: Path, tmp_path: Path
) -> None:
    """A base in NF4, magnitudes of another base, a rank above the matrix's."""
    fields = {"init_lora_weights": "pissa", **refused}
    with pytest.raises(ConfigurationError):
        opened(Recipe.model_construct(**{**recipe(tiny_folder).model_dump(), **fields}), tmp_path)


def test_qlora_trains_float32_adapters_on_a_frozen_nf4_base_on_the_cpu(
    tiny_folder: Path, tmp_path: Path
) -> None:
    """Norms stay in the compute type, nothing of the base is trained, gradients reach the adapters."""
    trained = opened(recipe(tiny_folder, method="qlora"), tmp_path).train()
    layer = trained.get_base_model().model.layers[0]
    assert layer.mlp.up_proj.base_layer.weight.dtype is torch.uint8
    assert layer.mlp.up_proj.base_layer.weight.quant_state.nested
    assert layer.input_layernorm.weight.dtype is model.compute_dtype()
    named = {name: one for name, one in trained.named_parameters() if one.requires_grad}
    assert all("lora_" in name and one.dtype is torch.float32 for name, one in named.items())
    trained(IDS, labels=IDS).loss.backward()
    assert all(one.grad is not None for one in named.values())


def test_gradients_of_nf4_survive_an_evaluation_on_cpus_with_avx512_bf16(
    tiny_folder: Path, tmp_path: Path
) -> None:
    """bitsandbytes repacks at the first evaluation and forgets gradients: the guard is set everywhere."""
    trained = opened(recipe(tiny_folder, method="qlora"), tmp_path)
    flags = [
        part.support_avx512bf16_for_cpu
        for part in trained.modules()
        if hasattr(part, "support_avx512bf16_for_cpu")
    ]
    assert flags
    assert not any(flags)
    trained.eval()
    with torch.no_grad():
        trained(IDS)
    trained.train()(IDS, labels=IDS).loss.backward()
    gradients = [one.grad for name, one in trained.named_parameters() if "lora_B" in name]
    assert all(gradient is not None and gradient.abs().max() > 0 for gradient in gradients)


def test_one_missing_target_module_is_named(tiny_folder: Path, tmp_path: Path) -> None:
    """PEFT itself would train the others without a word."""
    with pytest.raises(ConfigurationError, match=r"\['v_prj'\].*v_proj"):
        opened(recipe(tiny_folder, target_modules=["q_proj", "v_prj"]), tmp_path)


def test_adapters_begin_the_same_whatever_came_before(tiny_folder: Path, tmp_path: Path) -> None:
    """The recipe's seed decides."""
    first = opened(recipe(tiny_folder), tmp_path).state_dict()
    torch.manual_seed(99)
    second = opened(recipe(tiny_folder), tmp_path).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_champions_dropout_is_the_recipes(tiny_folder: Path, tmp_path: Path) -> None:
    """A recipe may change it from round to round."""
    model.save(opened(recipe(tiny_folder), tmp_path), tmp_path / "champion", {}, tmp_path)
    trained = opened(recipe(tiny_folder, lora_dropout=0.25), tmp_path, tmp_path / "champion")
    assert {part.p for part in trained.modules() if isinstance(part, torch.nn.Dropout)} == {0.25}


def test_the_engines_products_are_published_as_peft_has_them(tiny_folder: Path, tmp_path: Path) -> None:
    """After `Compute` has replaced the layers' forward, files and logits are the same."""
    trained = shaken(opened(recipe(tiny_folder), tmp_path))
    expected = logits(trained)
    Compute(trained)
    model.save(trained, tmp_path / "out", {}, tmp_path)
    served = PeftModel.from_pretrained(plain(tiny_folder), str(tmp_path / "out"))
    torch.testing.assert_close(logits(served), expected, atol=1e-4, rtol=1e-4)


def test_pissa_keeps_nothing_for_a_round_that_goes_on(tiny_folder: Path, tmp_path: Path) -> None:
    """It trains the champion's plain LoRA, of twice the recipe's rank, and adds no more."""
    wanted = recipe(tiny_folder, init_lora_weights="pissa")
    model.save(opened(wanted, tmp_path / "1"), tmp_path / "champion", {}, tmp_path / "1")
    second = opened(wanted, tmp_path / "2", tmp_path / "champion")
    assert second.peft_config["default"].r == 8
    assert not (tmp_path / "2" / pissa.START).exists()
