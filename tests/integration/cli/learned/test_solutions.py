"""`ratchet solutions`: what there is by task set, and taking a set's back."""

import json

import pytest

from services.cli.environment import Environment
from services.cli.learned import solutions as command
from services.core.db import Database
from services.core.errors import ConfigurationError
from services.trainer import solutions
from tests.integration.trainer.test_solutions import (
    LEARNER,
    SET,
    practise,
    programs,
    promote,
    put_tasks,
    take,
)

Shown = pytest.CaptureFixture[str]


@pytest.fixture
def practised(database: Database) -> None:
    """Two tasks solved twice each; a fine-tuned champion has learned half of that."""
    with database.transaction() as tx:
        task_ids = put_tasks(tx, 2)
        round_id = practise(tx, task_ids)
        for task_id in task_ids:
            solutions.store(tx, round_id, programs(task_id, 1))
        promote(tx, LEARNER.name, take(tx))
        for task_id in task_ids:
            solutions.store(tx, round_id, programs(task_id, 2))


@pytest.mark.usefixtures("practised")
def test_solutions_are_counted_by_task_set(settings: Environment, capsys: Shown) -> None:
    command.run(settings, None, as_json=True)
    assert json.loads(capsys.readouterr().out)["solutions"] == [
        {"task_set": SET, "tasks": 2, "offered": 4, "rounds": 1, "learned": 2}
    ]
    command.run(settings, SET, as_json=False)
    assert capsys.readouterr().out.splitlines()[1].split() == [SET, "2", "4", "1", "2"]


@pytest.mark.usefixtures("practised")
def test_those_of_a_set_are_withdrawn(settings: Environment, capsys: Shown) -> None:
    command.withdraw(settings, SET, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"task_set": SET, "withdrawn": 4}
    command.run(settings, None, as_json=False)
    assert "no solution yet" in capsys.readouterr().out


@pytest.mark.usefixtures("practised")
def test_a_set_without_solutions_is_an_error_that_names_those_with_some(settings: Environment) -> None:
    with pytest.raises(ConfigurationError, match=f"'ourz' has no solutions; those that have some: {SET}"):
        command.run(settings, "ourz", as_json=False)
