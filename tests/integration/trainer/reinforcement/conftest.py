"""Rounds of reinforcement in this process: a tiny team, its tasks as files, the real sandbox and database."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.core.db import Database
from services.core.settings import Settings
from services.trainer import gate
from services.trainer.context import Books, Context
from services.trainer.engine.distributed import ALONE
from services.trainer.heartbeat import Heart
from services.trainer.interruption import Interruption
from services.trainer.ledger import ANY_NUMBER_VARIABLE, Ledger
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement import evaluating
from services.trainer.tasks import folder
from tests import tiny_team
from tests.integration.trainer.test_recipes_run import interruption

__all__ = ["interruption"]
Contexts = Callable[..., Context]


class KilledError(BaseException):
    """What kill -9 at a failpoint is in these tests."""


@pytest.fixture(scope="session")
def team_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See `tiny_team.make`; made once."""
    return tiny_team.make(tmp_path_factory.mktemp("tiny-team"))


@pytest.fixture
def team_recipe(team_folder: Path) -> Recipe:
    return recipe_files.load(str(team_folder / "team.yaml"))


@pytest.fixture
def practise_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds begin with nothing new, as when they are asked for."""
    monkeypatch.setenv(ANY_NUMBER_VARIABLE, "1")


@pytest.fixture
def contexts(
    team_folder: Path,
    team_recipe: Recipe,
    database: Database,
    interruption: Interruption,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Contexts:
    """Makes what a process of a round is given; the same lease each time, and the same folders."""
    monkeypatch.setattr(folder.formats, "human_eval", list)  # nothing to compare the tasks with
    settings = Settings(
        adapters_dir=tmp_path / "adapters", checkpoints_dir=tmp_path / "checkpoints",
        logs_dir=tmp_path / "logs", cache_dir=tmp_path / "cache", benchmarks_dir=tmp_path / "benchmarks",
        tasks_dir=team_folder / "tasks", wandb_mode="disabled", allow_unsandboxed=True,
    )  # fmt: skip
    leases: dict[str, Any] = {}

    def make(recipe: Recipe | None = None, **changed: Any) -> Context:
        recipe = recipe or team_recipe
        ledger = Ledger(database, recipe.name)
        if recipe.name not in leases:
            leases[recipe.name] = ledger.take(recipe, "test")
        asked = settings.model_copy(update=changed)
        return Context(asked, recipe, Books(ledger, leases[recipe.name]), Heart(None), interruption, ALONE)

    return make


@pytest.fixture
def lenient_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every candidate is promoted: what is tested is not the gate, nor how much is learned in seconds."""
    judge = evaluating.verdict

    def promoted(*given: Any) -> gate.Verdict:
        return dataclasses.replace(judge(*given), promoted=True)

    monkeypatch.setattr(evaluating, "verdict", promoted)


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has the failpoint of that name raise KilledError; `""` none."""

    def die(_pid: int, _signal: int) -> None:
        raise KilledError

    monkeypatch.setattr("services.core.process.os.kill", die)

    def at(point: str) -> None:
        monkeypatch.setitem(os.environ, "RATCHET_FAILPOINT", point)

    return at
