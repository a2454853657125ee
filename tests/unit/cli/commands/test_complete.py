"""What the Tab key offers."""

import os
import subprocess
import sys

import pytest

from services.cli.commands import complete


@pytest.fixture
def adapters(tmp_path, monkeypatch):
    for name in ("demo/round-0001", "demo/round-0002", "other/round-0001"):
        (tmp_path / "adapters" / name).mkdir(parents=True)
    (tmp_path / "adapters" / "demo" / "current").symlink_to("round-0002")
    monkeypatch.setenv("ADAPTERS_DIR", str(tmp_path / "adapters"))
    monkeypatch.setenv("RECIPE", "demo")
    return tmp_path / "adapters"


def test_adapters_of_the_recipe_come_first_newest_first(adapters) -> None:
    assert complete.adapters("") == [
        "round-0002", "round-0001", "demo/round-0001", "demo/round-0002", "other/round-0001",
    ]  # fmt: skip
    assert complete.adapters("ot") == ["other/round-0001"]


def test_tracks_are_folders_with_adapters(adapters) -> None:
    assert complete.tracks("") == ["demo", "other"]


def test_who_can_answer(adapters) -> None:
    assert complete.subjects("b") == ["base"]
    assert complete.subjects("demo")[0] == "demo"


def test_recipes_and_experiments_are_those_that_ship() -> None:
    assert "qwen14b-qlora" in complete.recipes("qwen")
    assert complete.experiments("demo")


def test_wrong_settings_offer_nothing_and_are_no_error(monkeypatch) -> None:
    monkeypatch.setenv("MIN_NEW_FILES", "many")
    assert complete.adapters("") == complete.tracks("") == complete.sources("") == []


@pytest.mark.parametrize(
    ("shell", "variables", "offered"),
    [
        ("bash", {"COMP_WORDS": "ratchet stat", "COMP_CWORD": "1"}, {"status", "stats"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "ratchet ro"}, {"rounds", "round", "rollback"}),
        (
            "fish",
            {"_TYPER_COMPLETE_ARGS": "ratchet recipe ", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
            {"list"},
        ),
    ],
)
def test_every_shell_is_offered_commands(shell, variables, offered) -> None:
    """As its script asks: `ratchet --install-completion` writes that."""
    environment = {**os.environ, "_RATCHET_COMPLETE": f"complete_{shell}", **variables}
    command = [sys.executable, "-m", "services.cli.main"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert offered <= set(done.stdout.replace('"', " ").replace(":", " ").split())
