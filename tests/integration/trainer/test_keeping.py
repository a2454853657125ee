"""What a rollout leaves in a real database: solutions and episodes, and never an error."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from services.core.db import Database
from services.trainer.ledger import Ledger
from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement.episodes import Episode
from services.trainer.reinforcement.keeping import keep
from services.trainer.suites import programs
from services.trainer.tasks import store
from services.trainer.tasks.store import StoredTask
from tests.integration.trainer.test_round import rows
from tests.integration.trainer.test_solutions import practise, put_tasks
from tests.unit.trainer.test_transcripts import episode

ROUND: Any = SimpleNamespace(round_id=1)


def context_of(database: Database, **settings: object) -> Any:
    section = {"eval_interval": 5, "iterations": 20, **settings}
    recipe = Recipe.model_validate({"name": "team", "base_model": "b", "method": "lora",
                                    "objective": "reinforcement", "reinforcement": section})  # fmt: skip
    books = SimpleNamespace(ledger=Ledger(database, recipe.name))
    return SimpleNamespace(recipe=recipe, first_books=books, distribution=SimpleNamespace(is_first=True))


@pytest.fixture
def tasks(database: Database) -> dict[str, StoredTask]:
    """Those that round 1 trains on, by their keys."""
    with database.transaction() as tx:
        practise(tx, put_tasks(tx, 2))
        return {each.task.key: each for each in next(iter(store.read(tx, 1).values()))}


def rollout(tasks: dict[str, StoredTask]) -> list[Episode]:
    return [episode(key, solved=at == 0) for at, key in enumerate(tasks)]


def test_a_program_that_passed_is_kept_with_the_task_as_suites_ask_it(
    database: Database, tasks: dict[str, StoredTask]
) -> None:
    """Once, however often the iteration comes again after a crash."""
    for _ in range(2):
        keep(context_of(database), ROUND, 3, rollout(tasks), tasks)
    (kept,) = rows(database, "SELECT * FROM solutions")
    solved = next(iter(tasks.values()))
    assert (kept.task_id, kept.code, kept.round_id) == (solved.task_id, "x = 1\n", 1)
    assert kept.prompt == programs.question(solved.task)


def test_a_recipe_may_keep_none(database: Database, tasks: dict[str, StoredTask]) -> None:
    keep(context_of(database, keep_solutions=False), ROUND, 1, rollout(tasks), tasks)
    assert rows(database, "SELECT FROM solutions") == []
    assert len(rows(database, "SELECT FROM round_episodes")) == 2


def test_of_the_first_and_the_latest_rollout_some_episodes_stay(
    database: Database, tasks: dict[str, StoredTask]
) -> None:
    for step in (1, 2, 5, 10, 10):
        keep(context_of(database), ROUND, step, rollout(tasks), tasks)
    kept = rows(database, "SELECT DISTINCT iteration FROM round_episodes ORDER BY 1")
    assert [row.iteration for row in kept] == [1, 10]


def test_what_cannot_be_kept_is_said_and_the_round_goes_on(
    database: Database, tasks: dict[str, StoredTask], caplog: pytest.LogCaptureFixture
) -> None:
    """Here the round is none that the database knows."""
    with caplog.at_level(logging.WARNING):
        keep(context_of(database), SimpleNamespace(round_id=99), 1, rollout(tasks), tasks)  # type: ignore[arg-type]
    assert "iteration 1 is not kept" in caplog.text
