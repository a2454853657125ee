"""Architectures and tokenizers as transformers reads them: of a tiny model, of the known shapes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.core.errors import ConfigurationError, ModelNotFoundError
from services.core.settings import PROJECT
from services.trainer import architecture
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.shapes import KNOWN
from tests import tiny_model

PUBLISHED = {  # parameters, as the model cards round them
    "Qwen/Qwen2.5-Coder-1.5B-Instruct": 1.54e9,
    "Qwen/Qwen2.5-Coder-7B": 7.61e9,
    "Qwen/Qwen2.5-Coder-14B-Instruct": 14.7e9,
    "Qwen/Qwen2.5-Coder-32B-Instruct": 32.5e9,
    "meta-llama/Meta-Llama-3-8B": 8.03e9,
    "HuggingFaceTB/SmolLM2-135M": 135e6,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama with a chat template and without tokens for fill-in-the-middle."""
    return tiny_model.make(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def _without_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is asked for, nothing is cached."""
    monkeypatch.setattr(architecture, "hub_answers", lambda: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


def check(tmp_path: Path, **fields):
    return architecture.check(Recipe(name="mine", **fields), tmp_path)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_known_shape_has_as_many_parameters_as_its_model_card_says(name: str) -> None:
    read = architecture.read(architecture.known_config(KNOWN[name]))
    assert read.parameters == pytest.approx(PUBLISHED[name], rel=0.01)


def test_a_config_says_what_a_model_is_made_of(model: Path, tmp_path: Path) -> None:
    """The tiny Llama: seven linear layers in each of two decoder layers, and a head."""
    found = check(tmp_path, base_model=str(model), lora_r=8, max_length=512)
    assert found.problems == ()
    assert found.config_from == "its folder"
    assert found.architecture is not None
    assert (found.architecture.model_type, found.architecture.layers, found.architecture.hidden) == (
        "llama",
        2,
        64,
    )
    assert len(found.architecture.linear) == 14
    assert found.architecture.head == "lm_head"
    assert {"target_modules", "vocabulary", "chat template"} <= set(found.checked)


def test_adapters_have_as_many_parameters_as_peft_gives_them(model: Path, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    adapted = get_peft_model(
        AutoModelForCausalLM.from_pretrained(model),
        LoraConfig(r=8, target_modules="all-linear", use_dora=True, task_type="CAUSAL_LM"),
    )
    found = check(tmp_path, base_model=str(model), lora_r=8, use_dora=True, max_length=512)
    assert found.trainable == adapted.get_nb_trainable_parameters()[0]


def test_fill_in_the_middle_needs_its_tokens(model: Path, tmp_path: Path) -> None:
    found = check(tmp_path, base_model=str(model), objective="cpt", fim_rate=0.5, lora_r=8, max_length=512)
    assert any("no tokens for fill-in-the-middle" in problem for problem in found.problems)


def test_without_the_hub_a_known_shape_is_checked_all_the_same(tmp_path: Path) -> None:
    found = check(tmp_path, base_model="Qwen/Qwen2.5-Coder-7B-Instruct", target_modules=("qproj",))
    assert found.config_from == "Ratchet's table of known shapes"
    assert any("did you mean q_proj" in problem for problem in found.problems)
    assert found.not_checked == ("tokenizer: the hub does not answer, and its cache has none",)


def test_without_the_hub_an_unknown_model_is_not_called_right(tmp_path: Path) -> None:
    found = check(tmp_path, base_model="somebody/something")
    assert (found.checked, found.problems, found.architecture) == ((), (), None)
    assert [reason.partition(":")[0] for reason in found.not_checked] == ["config", "tokenizer"]


def test_a_folder_without_a_model_is_a_problem(tmp_path: Path) -> None:
    found = check(tmp_path, base_model=f"{tmp_path}/nothing")
    assert "is not a folder with a config.json" in found.problems[0]


def test_a_model_that_writes_no_text_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "vit", "hidden_size": 8}))
    found = check(tmp_path, base_model=str(tmp_path))
    assert any(problem.startswith(f"base_model {tmp_path}: ") for problem in found.problems)


def test_a_recipe_that_does_not_fit_stops_a_round_before_it_is_opened(model: Path, tmp_path: Path) -> None:
    """With all of its problems: an open round would keep the recipe that cannot work."""
    wrong = Recipe(name="mine", base_model=str(model), lora_r=64, max_length=4096)
    with pytest.raises(ConfigurationError, match=r"max_length=4096 is above .*; lora_r=64 is above"):
        architecture.require(wrong, tmp_path)
    architecture.require(wrong.model_copy(update={"lora_r": 8, "max_length": 512}), tmp_path)


def test_a_model_that_is_not_to_be_had_stops_a_round_though_its_shape_is_known(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="is not in the hub's cache"):
        architecture.require(Recipe(name="mine", base_model="Qwen/Qwen2.5-Coder-7B-Instruct"), tmp_path)


def test_the_process_prints_its_findings_as_json(model: Path, tmp_path: Path) -> None:
    """The command line reads them: it never imports transformers."""
    recipe = Recipe(name="mine", base_model=str(model), lora_r=8, max_length=512)
    done = subprocess.run(
        [sys.executable, "-m", "services.trainer.architecture"],
        input=recipe.model_dump_json(), env={**os.environ, "CACHE_DIR": str(tmp_path)},
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["architecture"]["model_type"] == "llama"
