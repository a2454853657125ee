"""`ratchet recipe`: what there is, who says what, and what is wrong."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.environment import Environment, read
from services.cli.main import app
from services.cli.training import recipe as command
from services.core.settings import RECIPE_OVERRIDES, from_environment
from services.trainer.recipes.files import available

FOUND = {
    "base_model": "./m", "config_from": "its folder", "trainable": 10, "checked": ["architecture"],
    "architecture": {
        "model_type": "llama", "layers": 2, "hidden": 64, "positions": None, "vocabulary": 1000,
        "parameters": 1000, "head": "lm_head", "tied": True,
    },
    "targets": [{"name": "q_proj", "count": 2, "inputs": 64, "outputs": 32}],
    "not_checked": ["tokenizer: the hub does not answer"], "problems": [],
}  # fmt: skip


def of(**variables: str) -> Environment:
    return Environment(variables, from_environment({"RECIPE": "demo", **variables}))


@pytest.fixture
def ratchet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The command line, with nothing of this machine's environment."""
    for name in ("RECIPE", *(field.upper() for field in RECIPE_OVERRIDES)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path))
    return lambda *arguments, **environment: CliRunner().invoke(app, ["recipe", *arguments], env=environment)


def test_the_list_has_every_recipe_and_marks_the_chosen_one(ratchet) -> None:
    told = json.loads(ratchet("list", "--json", RECIPE="qwen7b-full").output)
    assert [row["name"] for row in told] == available()
    assert [row["name"] for row in told if row["chosen"]] == ["qwen7b-full"]
    assert {"base_model", "method", "objective", "description"} <= told[0].keys()


def test_the_list_in_words_has_an_arrow_before_the_chosen_one(ratchet) -> None:
    lines = ratchet("list", RECIPE="qwen7b-full").output.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("→ q")] == ["qwen7b-full"]


def test_a_recipe_of_ones_own_that_is_chosen_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("base_model: ./m\n")
    *_, mine = command.listed(of(RECIPE=str(path)))
    assert (mine["name"], mine["chosen"], mine["base_model"]) == (str(path), True, "./m")


def test_a_path_counts_from_where_it_was_said(tmp_path: Path) -> None:
    """The environment's from here, that of `.env` from the project: the daemon runs elsewhere."""
    project, here = tmp_path / "project", tmp_path / "here"
    project.mkdir()
    (project / ".env").write_text("RECIPE=./mine.yaml\n")
    assert read({}, project, here).settings.recipe == str(project / "mine.yaml")
    assert read({"RECIPE": "mine.yaml"}, project, here).settings.recipe == str(here / "mine.yaml")
    assert read({"RECIPE": "demo"}, project, here).settings.recipe == "demo"


def test_a_wrong_recipe_is_listed_with_what_is_wrong(tmp_path: Path) -> None:
    """It does not hide the others."""
    (tmp_path / "good.yaml").write_text("base_model: ./m\n")
    (tmp_path / "wrong.yaml").write_text("base_model: ./m\nlora_r: 0\n")
    good, wrong = command.listed(of(RECIPE="good"), tmp_path)
    assert good["problem"] is None
    assert "lora_r=0: must be at least 1" in wrong["problem"]
    assert any("wrong: " in line for line in command.list_lines([good, wrong]))


def test_show_says_who_says_what(ratchet) -> None:
    told = json.loads(ratchet("show", "qwen14b-qlora", "--json", LORA_R="64").output)
    assert told["recipe"]["lora_r"] == 64
    assert told["origins"]["lora_r"] == "environment"
    assert told["origins"]["lora_alpha"] == "recipe"
    assert told["origins"]["seed"] == "default"
    assert told["origins"].keys() == told["recipe"].keys()


def test_show_marks_an_override_and_what_it_replaces(ratchet) -> None:
    lines = ratchet("show", "qwen14b-qlora", LORA_R="64").output.splitlines()
    (line,) = (line for line in lines if " lora_r " in line)
    assert line.split() == ["!", "lora_r", "64", "(from", "LORA_R;", "otherwise", "256)"]


def test_show_without_a_name_shows_what_recipe_names(ratchet) -> None:
    assert ratchet("show", RECIPE="qwen7b-full").output.startswith("qwen7b-full (")


def test_a_field_under_another_name_is_the_recipes(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("base_model: ./m\ngradient_checkpointing: true\n")
    _, recipe, fields = command.resolved(of(), str(path))
    assert recipe.recomputation == "full"
    assert {field.name: field.origin for field in fields}["recomputation"] == "recipe"


@pytest.mark.parametrize("name", ["qwen14b", "nothing-like-it"])
def test_a_recipe_there_is_not_is_an_error_in_one_line(name: str, ratchet) -> None:
    done = ratchet("show", name)
    assert done.exit_code == 1
    assert len(done.output.splitlines()) == 1
    assert "does not exist" in done.output


def test_check_prints_what_was_found(ratchet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "examined", lambda environment, recipe: FOUND)
    done = ratchet("check", "demo")
    assert done.exit_code == 0
    assert "2 × q_proj 64 → 32" in done.output
    assert "1,000; trained 10 (1.00% of them)" in done.output
    assert "nothing is wrong with what was checked" in done.output


def test_check_fails_when_something_is_wrong(ratchet, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**FOUND, "problems": ["lora_r=512 is above the rank of q_proj"]}
    monkeypatch.setattr(command, "examined", lambda environment, recipe: wrong)
    done = ratchet("check", "demo", "--json")
    assert done.exit_code == 1
    assert json.loads(done.output)["problems"] == wrong["problems"]


def test_a_child_that_breaks_is_an_error_with_its_last_line(ratchet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "CHILD", "services.trainer.no_such_module")
    done = ratchet("check", "demo")
    assert done.exit_code == 1
    assert "No module named" in done.output
