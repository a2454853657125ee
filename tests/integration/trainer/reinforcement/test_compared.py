"""`ratchet compare` with a team: the tasks that its round was judged by, written and run in the sandbox."""

from dataclasses import asdict

import pytest

from services.core.db import Database
from services.core.models import ContentRole
from services.trainer import subjects
from services.trainer.comparing import __main__ as child
from services.trainer.comparing import questions
from services.trainer.tasks import store
from services.trainer.tasks.placed import PlacedTask
from tests import published_team
from tests import tiny_model as tiny
from tests.published_team import PublishedTeam


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> PublishedTeam:
    home = tmp_path_factory.mktemp("home")
    return published_team.published(home, tiny.make(home / "model"))


def test_every_models_programs_are_run(made: PublishedTeam) -> None:
    """Of the base and of one role as a question, of the team as in its rounds."""
    sent = {
        "subjects": ["base", "champion", "champion/coder"], "suites": [], "prompts": [], "contents": [],
        "tasks": [asdict(published_team.task(number)) for number in range(2)], "items": 5, "seed": 1,
        "request": {"max_new_tokens": 8, "stop": []}, "chat": None,
    }  # fmt: skip
    found = child.compared(sent, made.settings)
    assert [each["figures"]["pass@1"] for each in found["found"]] == [0.0, 0.0, 0.0]
    assert found["items"]["easy/0"]["wanted"].startswith("def f0(x):")
    assert "── coder ──" in found["found"][1]["scores"][0]["detail"]["written"]


def test_the_tasks_are_those_that_the_round_held_out(made: PublishedTeam, database: Database) -> None:
    champion = subjects.resolve("champion", made.settings)
    held_out = made.tasks[ContentRole.HELD_OUT]
    with database.transaction() as tx:
        assert questions.held_out_tasks(tx, champion) == []
        placed = [PlacedTask(each.task, "test", each.task.name, "easy") for each in held_out]
        store.write(tx, "easy", placed, signature=None, source=None)
        ids = {each.placed.task.name: each.task_id for each in store.standing(tx, "easy")}
        tx._cursor.execute("INSERT INTO tracks (name, recipe) VALUES ('pair', '{}')")
        tx._cursor.execute(
            "INSERT INTO rounds (track, number, state, recipe, snapshot_hash, closed_at)"
            " VALUES ('pair', 1, 'promoted', '{}', '', now()) RETURNING id"
        )
        (round_id,) = tx._cursor.fetchone()
        chosen = tuple((ids[each.task.name], bytes.fromhex(each.task.key)) for each in held_out)
        store.store_snapshot(tx, round_id, store.TaskChoice((), (), chosen))
        assert questions.held_out_tasks(tx, champion) == [each.task for each in held_out]
