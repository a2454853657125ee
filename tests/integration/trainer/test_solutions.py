"""Solutions on a real PostgreSQL: kept by rounds that practise, offered to others, taken back."""

from collections.abc import Callable, Sequence
from typing import Any

import psycopg2
import pytest

from services.core.db import Database, Transaction, as_json
from services.core.errors import ConfigurationError
from services.core.target import Target
from services.trainer import solutions
from services.trainer.ledger import Ledger
from services.trainer.recipes.recipe import Recipe
from services.trainer.solutions import MOST, Offered, Solved
from services.trainer.suites.formats import Task
from services.trainer.tasks import store
from services.trainer.tasks.placed import PlacedTask, prompt_digest

SET = "ours"
LEARNER = Recipe.model_validate({"name": "learner", "base_model": "b", "solutions_share": 0.5})


def task(name: str) -> Task:
    prompt = f'def f(n):\n    """What {name} says."""\n'
    test = "def check(candidate):\n    assert candidate(1) == 1\n"
    return Task(name, prompt, None, prompt, "    return n\n", test, "f", "check")


def put_tasks(tx: Transaction, train: int, test: int = 1) -> list[int]:
    """A set of so many tasks; the ids of those to be trained on."""
    places: list[tuple[str, Any]] = [(f"{SET}/{number}", "train") for number in range(train)]
    places += [(f"{SET}/test/{number}", "test") for number in range(test)]
    placed = [PlacedTask(task(name), split, name, "test") for name, split in places]
    store.write(tx, SET, placed, signature="s", source="test")
    return [each.task_id for each in store.standing(tx, SET) if each.placed.split == "train"]


TEST_ELSEWHERE = (
    "INSERT INTO tasks (task_set, name, sha256, prompt_sha256, task_group, split, style, payload, source)"
    " SELECT 'theirs', name, sha256, prompt_sha256, task_group, 'test', style, payload, source FROM tasks"
    " WHERE id = %(task)s"
)


def open_round(tx: Transaction, track: str, recipe: Any = None, number: int = 1) -> int:
    cursor = tx._cursor
    cursor.execute("INSERT INTO tracks (name, recipe) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                   (track, as_json(recipe or {})))  # fmt: skip
    cursor.execute("INSERT INTO rounds (track, number, recipe, snapshot_hash) VALUES (%s, %s, '{}', '')"
                   " RETURNING id", (track, number))  # fmt: skip
    return int(cursor.fetchone()[0])


def practise(tx: Transaction, task_ids: Sequence[int], track: str = "team") -> int:
    """An open round that trains on these tasks."""
    round_id = open_round(tx, track)
    tx.copy("round_tasks", ("round_id", "task_id", "role", "position"),
            [(round_id, task_id, "train", at) for at, task_id in enumerate(task_ids)])  # fmt: skip
    return round_id


def programs(task_id: int, count: int, prefix: str = "n") -> list[Solved]:
    """Different ones: each a sum of one more part."""
    return [Solved(task_id, f"Task {task_id}", f"def f(n):\n    return {' + '.join([prefix] * each)}\n")
            for each in range(1, count + 1)]  # fmt: skip


def close(tx: Transaction, round_id: int, state: str) -> None:
    tx._cursor.execute("UPDATE rounds SET state = %s, closed_at = now() WHERE id = %s", (state, round_id))


def promote(tx: Transaction, track: str, round_id: int) -> None:
    close(tx, round_id, "promoted")
    tx._cursor.execute(
        "INSERT INTO adapters (track, round_id, directory, manifest) VALUES (%s, %s, 'round-0001', '{}')"
        " RETURNING id", (track, round_id),
    )  # fmt: skip
    adapter = tx._cursor.fetchone()[0]
    tx._cursor.execute(
        "INSERT INTO promotions (track, adapter_id, token, reason, kind, actor)"
        " VALUES (%s, %s, 1, 'better', 'promoted', 'gate')", (track, adapter),
    )  # fmt: skip


def offered(
    tx: Transaction, track: str = "learner", most: int = 1000, barred: Sequence[bytes] = ()
) -> list[Offered]:
    return solutions.offered(tx, track, LEARNER, most, barred)


def test_a_program_that_passed_is_kept_once(database: Database) -> None:
    """An iteration that comes again after a crash changes nothing."""
    with database.transaction() as tx:
        (first, *_) = put_tasks(tx, 2)
        round_id = practise(tx, [first])
        assert solutions.store(tx, round_id, programs(first, 2)) == 2
        assert solutions.store(tx, round_id, programs(first, 2)) == 0
        assert len(offered(tx)) == 2


def test_of_a_task_few_are_offered_whichever_round_wrote_them(database: Database) -> None:
    with database.transaction() as tx:
        (first, *_) = put_tasks(tx, 1)
        for track in ("one", "other"):
            solutions.store(tx, practise(tx, [first], track), programs(first, 5, prefix=track[0]))
        assert len(offered(tx)) == MOST


def test_one_of_every_task_is_offered_before_a_second_of_any(database: Database) -> None:
    with database.transaction() as tx:
        task_ids = put_tasks(tx, 4)
        round_id = practise(tx, task_ids)
        for task_id in task_ids:
            solutions.store(tx, round_id, programs(task_id, 3))
        found = offered(tx, most=8)
        assert len(found) == 4
        assert len({each.task for each in found}) == 4


@pytest.mark.parametrize("outcome", ["split", "round"])
def test_the_database_refuses_solutions_of_tasks_that_judge(database: Database, outcome: str) -> None:
    """Whatever the code does: tasks of a test split, and tasks that the round did not train on."""
    with database.transaction() as tx:
        first, second = put_tasks(tx, 2)
        round_id = practise(tx, [first])
        judging = second if outcome == "round" else tx_value(tx, "SELECT id FROM tasks WHERE split = 'test'")
    with pytest.raises(psycopg2.Error, match="gives no solution"), database.transaction() as tx:
        solutions.store(tx, round_id, programs(judging, 1))


def tx_value(tx: Transaction, statement: str) -> Any:
    tx._cursor.execute(statement)
    return tx._cursor.fetchone()[0]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tasks SET retired_at = now() WHERE id = %(task)s",
        "UPDATE tasks SET excluded = 'its reference fails' WHERE id = %(task)s",
        "UPDATE tasks SET split = 'test' WHERE id = %(task)s",
        TEST_ELSEWHERE,
    ],
    ids=["retired", "excluded", "test now", "test elsewhere"],
)  # fmt: skip
def test_no_solution_of_a_task_that_may_not_be_trained_on_now(database: Database, change: str) -> None:
    with database.transaction() as tx:
        (first,) = put_tasks(tx, 1)
        solutions.store(tx, practise(tx, [first]), programs(first, 2))
        assert len(offered(tx)) == 2
        tx._cursor.execute("INSERT INTO task_sets (name) VALUES ('theirs')")
        tx._cursor.execute(change, {"task": first})
        assert offered(tx) == []


def test_no_solution_of_what_a_suite_of_the_recipe_asks(database: Database) -> None:
    with database.transaction() as tx:
        first, second = put_tasks(tx, 2)
        round_id = practise(tx, [first, second])
        solutions.store(tx, round_id, [*programs(first, 1), *programs(second, 1)])
        assert len(offered(tx, barred=[prompt_digest(task(f"{SET}/0"))])) == 1


def take(tx: Transaction, number: int = 1) -> int:
    """A round of the learner with all that is offered."""
    round_id = open_round(tx, "learner", LEARNER.model_dump(mode="json"), number)
    solutions.store_snapshot(tx, round_id, offered(tx))
    return round_id


def test_what_the_champion_has_learned_is_not_offered_to_its_track_again(database: Database) -> None:
    """To another track it is."""
    with database.transaction() as tx:
        (first,) = put_tasks(tx, 1)
        solutions.store(tx, practise(tx, [first]), programs(first, 2))
        promote(tx, "learner", take(tx))
        assert offered(tx) == []
        assert len(offered(tx, track="another")) == 2


@pytest.mark.parametrize(("state", "left"), [("refused", 2), ("failed", 0)])
def test_what_a_refused_round_had_is_offered_again_and_of_a_failed_one_not(
    database: Database, state: str, left: int
) -> None:
    """As with contents: what may have crashed a round twice is not tried a third time."""
    with database.transaction() as tx:
        (first,) = put_tasks(tx, 1)
        solutions.store(tx, practise(tx, [first]), programs(first, 2))
        close(tx, take(tx), state)
        assert len(offered(tx)) == left


def test_a_snapshot_reads_the_same_however_many_solutions_come_later(database: Database) -> None:
    with database.transaction() as tx:
        (first,) = put_tasks(tx, 1)
        practice = practise(tx, [first])
        solutions.store(tx, practice, programs(first, 3))
        round_id = take(tx)
        before = solutions.read(tx, round_id)
        solutions.store(tx, practice, programs(first, 9, prefix="abs(n)"))
        assert solutions.read(tx, round_id) == before
        assert [each.name for each in before] == [f"{SET}/0"] * 3


def test_withdrawn_solutions_leave_no_text_and_do_not_come_back(database: Database) -> None:
    """What names them, a round's snapshot, keeps their digests."""
    with database.transaction() as tx:
        (first,) = put_tasks(tx, 1)
        practice = practise(tx, [first])
        solutions.store(tx, practice, programs(first, 2))
        close(tx, round_id := take(tx), "refused")
        digests = [each.sha256 for each in solutions.read(tx, round_id)]
        assert solutions.withdraw(tx, task_set=SET, round_id=None) == 2
        assert {each.code + each.prompt for each in solutions.read(tx, round_id)} == {""}
        assert [each.sha256 for each in solutions.read(tx, round_id)] == digests
        assert solutions.store(tx, practice, programs(first, 2)) == 0
        assert offered(tx) == []


def test_what_an_open_round_trains_on_is_not_withdrawn(database: Database) -> None:
    with database.transaction() as tx:
        (first,) = put_tasks(tx, 1)
        practice = practise(tx, [first])
        solutions.store(tx, practice, programs(first, 1))
        take(tx)
        with pytest.raises(ConfigurationError, match="round 1 of learner is open"):
            solutions.withdraw(tx, task_set=None, round_id=practice)


def test_the_trainers_role_keeps_and_takes_solutions(
    database: Database, role_target: Callable[[str], Target]
) -> None:
    with database.transaction() as tx:
        (first,) = put_tasks(tx, 1)
        round_id = practise(tx, [first])
    pool = Database(role_target("ratchet_trainer"), application="test")
    try:
        ledger = Ledger(pool, "team")
        assert ledger.keep_solutions(round_id, programs(first, 2)) == 2
        with pool.transaction() as tx:
            assert len(offered(tx)) == 2
            solutions.record_seen(tx, round_id, {1: 2})
    finally:
        pool.close()
