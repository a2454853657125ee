"""Tasks in a real database: read again, given to rounds, and what a round may never have."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from services.core.db import Database, Transaction
from services.core.errors import ConfigurationError
from services.core.models import ContentRole
from services.core.target import Target
from services.trainer.suites.formats import Task
from services.trainer.tasks import store
from services.trainer.tasks.placed import PlacedTask
from services.trainer.tasks.store import TaskExposure, Written

TRACK = "marl"
ASKED = SimpleNamespace(tasks="ours", eval_tasks=None)


def task(name: str, prompt: str | None = None, test: str = "assert candidate(1) == 1") -> Task:
    prompt = prompt or f'def f(x):\n    """What {name} says."""\n'
    return Task(
        name, prompt, None, prompt, "    return x\n", f"def check(candidate):\n    {test}\n", "f", "check"
    )


def placed(name: str, split: str = "train", **fields: object) -> PlacedTask:
    made = fields.pop("task", None) or task(name)
    return PlacedTask(made, split, **{"group": name, "source": f"ours.jsonl:{name}"} | fields)


SOME = [*(placed(f"ours/{number}") for number in range(40)), *(placed(f"test/{n}", "test") for n in range(5))]


def write(tx: Transaction, tasks: list[PlacedTask], name: str = "ours") -> Written:
    return store.write(tx, name, tasks, signature="s", source="ours.jsonl")


def round_of(tx: Transaction, number: int, state: str = "refused") -> int:
    cursor = tx._cursor
    cursor.execute("INSERT INTO tracks (name, recipe) VALUES (%s, '{}') ON CONFLICT DO NOTHING", (TRACK,))
    cursor.execute(
        "INSERT INTO rounds (track, number, state, recipe, snapshot_hash, closed_at)"
        " VALUES (%s, %s, %s, '{}', '', now()) RETURNING id",
        (TRACK, number, state),
    )
    return int(cursor.fetchone()[0])


def test_a_set_that_is_read_again_unchanged_changes_no_row(database: Database) -> None:
    with database.transaction() as tx:
        assert write(tx, SOME) == Written(added=45, retired=0, moved=0, same=45 - 45)
        assert write(tx, SOME) == Written(added=0, retired=0, moved=0, same=45)


def test_what_vanished_is_retired_and_comes_back_as_the_row_it_was(database: Database) -> None:
    with database.transaction() as tx:
        write(tx, SOME)
        before = {each.placed.task.name: each.task_id for each in store.standing(tx, "ours")}
        assert write(tx, SOME[1:]).retired == 1
        assert "ours/0" not in {each.placed.task.name for each in store.standing(tx, "ours")}
        assert write(tx, SOME).moved == 1
        assert {each.placed.task.name: each.task_id for each in store.standing(tx, "ours")} == before


def test_a_changed_task_is_a_new_row_and_a_round_keeps_the_old_one(database: Database) -> None:
    changed = placed("ours/0", task=task("ours/0", test="assert candidate(2) == 2"))
    with database.transaction() as tx:
        write(tx, SOME)
        round_id = round_of(tx, 1)
        store.store_snapshot(tx, round_id, store.choose(tx, TRACK, ASKED, seed=1))
        before = store.read(tx, round_id)
        assert write(tx, [changed, *SOME[1:]]) == Written(added=1, retired=1, moved=0, same=44)
        assert store.read(tx, round_id) == before


def test_tasks_come_back_as_they_were_stored(database: Database) -> None:
    odd = task("odd/1", 'def f(x):\n    """Tab\\t, "quotes", \\\\, ü, \U0001f600."""\n')
    with database.transaction() as tx:
        write(tx, [placed("odd/1", task=odd)])
        (found,) = store.standing(tx, "ours")
    assert found.placed == placed("odd/1", task=odd)


def test_rounds_wait_for_tasks_that_no_round_of_the_track_trained_on(database: Database) -> None:
    with database.transaction() as tx:
        assert store.count_new(tx, TRACK, "ours", most=100) == 0
        write(tx, SOME)
        chosen = store.choose(tx, TRACK, ASKED, seed=1)
        assert store.count_new(tx, TRACK, "ours", most=100) == len(chosen.train)
        assert store.count_new(tx, TRACK, "ours", most=3) == 3
        store.store_snapshot(tx, round_of(tx, 1), chosen)
        assert store.count_new(tx, TRACK, "ours", most=100) == 0
        assert store.count_new(tx, "another track", "ours", most=100) == len(chosen.train)


def test_the_next_round_begins_with_what_is_new(database: Database) -> None:
    with database.transaction() as tx:
        write(tx, SOME)
        store.store_snapshot(tx, round_of(tx, 1), store.choose(tx, TRACK, ASKED, seed=1))
        more = [placed(f"more/{number}", group="ours/0") for number in range(3)]
        write(tx, [*SOME, *more])
        chosen = store.choose(tx, TRACK, ASKED, seed=1)
        ids = {each.placed.task.name: each.task_id for each in store.standing(tx, "ours")}
    assert {task_id for task_id, _ in chosen.train[:3]} == {ids[each.task.name] for each in more}


def test_what_judged_a_round_is_never_trained_on_though_its_split_changed(database: Database) -> None:
    with database.transaction() as tx:
        write(tx, SOME)
        first = store.choose(tx, TRACK, ASKED, seed=1)
        store.store_snapshot(tx, round_of(tx, 1), first)
        turned = [placed(each.task.name, "test" if each.split == "train" else "train") for each in SOME]
        write(tx, turned)
        with pytest.raises(ConfigurationError, match="nothing to train on"):
            store.choose(tx, TRACK, ASKED, seed=1)


def test_a_test_task_of_another_set_is_not_trained_on(database: Database) -> None:
    same_words = task("theirs/1", 'def f( x ):\n  """What OURS/3 says."""\n')
    with database.transaction() as tx:
        write(
            tx,
            [*SOME, placed("ours/3b", group="ours/0", task=task("ours/3b", "def g(x):\n    '''New.'''\n"))],
        )
        before = {task_id for task_id, _ in store.choose(tx, TRACK, ASKED, seed=1).train}
        write(tx, [placed("theirs/1", "test", task=same_words)], "theirs")
        after = {task_id for task_id, _ in store.choose(tx, TRACK, ASKED, seed=1).train}
        names = {each.task_id: each.placed.task.name for each in store.standing(tx, "ours")}
    assert {names[each] for each in before - after} == {"ours/3"}


def test_excluded_tasks_are_in_no_round_and_are_listed_with_the_reason(database: Database) -> None:
    bad = placed("ours/0", excluded="its reference fails: NameError")
    with database.transaction() as tx:
        write(tx, [bad, *SOME[1:]])
        (listed,) = [each for each in store.standing(tx, "ours") if each.placed.excluded]
        chosen = store.choose(tx, TRACK, ASKED, seed=1)
    assert listed.placed == bad
    assert listed.task_id not in {task_id for _, tasks in chosen.roles for task_id, _ in tasks}


def test_a_round_is_judged_by_the_test_split_of_the_set_that_its_recipe_names(database: Database) -> None:
    with database.transaction() as tx:
        write(tx, SOME)
        write(tx, [placed("theirs/1"), placed("theirs/2", "test")], "theirs")
        asked = SimpleNamespace(tasks="ours", eval_tasks="theirs")
        chosen = store.choose(tx, TRACK, asked, seed=1)
        ids = {each.placed.task.name: each.task_id for each in store.standing(tx, "theirs")}
    assert [task_id for task_id, _ in chosen.held_out] == [ids["theirs/2"]]


def test_an_unknown_set_is_named_with_the_nearest_and_all_there_are(database: Database) -> None:
    with database.transaction() as tx:
        write(tx, SOME)
        with pytest.raises(ConfigurationError, match=r"no task set 'our', the nearest is ours.*our\.jsonl"):
            store.choose(tx, TRACK, SimpleNamespace(tasks="our", eval_tasks=None), seed=1)


def test_a_set_that_cannot_be_used_says_how_many_are_left_out_and_why(database: Database) -> None:
    with database.transaction() as tx:
        write(tx, [placed(f"ours/{number}", excluded="no test") for number in range(7)])
        with pytest.raises(
            ConfigurationError, match=r"of its 7 tasks usable are none; left out: 7 × no test"
        ):
            store.choose(tx, TRACK, ASKED, seed=1)


def test_exposures_of_an_attempt_replace_those_of_the_one_before(database: Database) -> None:
    with database.transaction() as tx:
        write(tx, SOME)
        round_id = round_of(tx, 1)
        chosen = store.choose(tx, TRACK, ASKED, seed=1)
        (first, _), (second, _) = chosen.train[:2]
        store.record_exposures(tx, round_id, [TaskExposure(first, 8, 3, 900), TaskExposure(second, 1, 0, 9)])
        store.record_exposures(tx, round_id, [TaskExposure(first, 4, 4, 100)])
        tx._cursor.execute("SELECT task_id, episodes, solved, tokens FROM task_exposures")
        assert [tuple(row) for row in tx._cursor.fetchall()] == [(first, 4, 4, 100)]


def test_the_trainers_role_may_do_all_of_it(role_target: Callable[[str], Target], database: Database) -> None:
    with database.transaction() as tx:
        round_id = round_of(tx, 1)
    trainer = Database(role_target("ratchet_trainer"), application="test")
    try:
        with trainer.transaction() as tx:
            write(tx, SOME)
            write(tx, [placed("ours/0", excluded="why"), *SOME[2:]])
            store.store_snapshot(tx, round_id, store.choose(tx, TRACK, ASKED, seed=1))
            store.record_exposures(tx, round_id, [])
            assert store.read(tx, round_id)[ContentRole.TRAIN]
    finally:
        trainer.close()


def test_what_was_made_of_a_test_task_of_another_set_is_not_trained_on(database: Database) -> None:
    with database.transaction() as tx:
        write(tx, [*SOME, placed("ours/a", group="Seed/7"), placed("ours/b", group="Seed/7")])
        before = {task_id for task_id, _ in store.choose(tx, TRACK, ASKED, seed=1).train}
        write(
            tx,
            [placed("Seed/7", "test"), placed("ours/1", "test", task=task("ours/1", "def other():"))],
            "theirs",
        )
        after = {task_id for task_id, _ in store.choose(tx, TRACK, ASKED, seed=1).train}
        names = {each.task_id: each.placed.task.name for each in store.standing(tx, "ours")}
    assert {names[each] for each in before - after} == {"ours/a", "ours/b"}


def test_what_has_taught_the_track_does_not_judge_it_under_another_name(database: Database) -> None:
    copies = [replace(each.task, name=f"copy of {each.task.name}") for each in SOME]
    with database.transaction() as tx:
        write(tx, SOME)
        first = store.choose(tx, TRACK, ASKED, seed=1)
        store.store_snapshot(tx, round_of(tx, 1), first)
        write(tx, [placed(each.name, "test", task=each) for each in copies], "theirs")
        write(tx, [placed("new")], "new")
        asked = SimpleNamespace(tasks="new", eval_tasks="theirs")
        judging = {task_id for task_id, _ in store.choose(tx, TRACK, asked, seed=1).held_out}
        names = {each.placed.task.name for each in store.standing(tx, "theirs") if each.task_id in judging}
        ours = {each.task_id: each.placed.task.name for each in store.standing(tx, "ours")}
    taught = {f"copy of {ours[task_id]}" for task_id, _ in first.train}
    assert names == {each.name for each in copies} - taught
