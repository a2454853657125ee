"""Sets on their way into the database, references run in the real sandbox."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from services.core.db import Database
from services.core.errors import ConfigurationError, SandboxError
from services.core.sandbox import Sandbox
from services.core.settings import Settings
from services.trainer.suites.references import program_of
from services.trainer.tasks import easy, folder, store
from services.trainer.tasks.store import Written
from tests.unit.trainer.tasks.test_reading import HUMAN_EVAL, written

Open = Callable[[], AbstractContextManager[Sandbox]]


def no_sandbox() -> AbstractContextManager[Sandbox]:
    raise SandboxError("no sandbox")


def record(number: int, **fields: object) -> dict[str, object]:
    said = f'def double(x):\n    """Twice {" ".join([f"word{number}"] * 9)}."""\n'
    return HUMAN_EVAL | {"task_id": f"Mine/{number}", "prompt": said} | fields


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "tasks").mkdir()
    return Settings(
        tasks_dir=tmp_path / "tasks", benchmarks_dir=tmp_path / "benchmarks", cache_dir=tmp_path / "cache"
    )


@pytest.fixture
def sandbox() -> Open:
    return lambda: Sandbox.open(None)


def fill(settings: Settings) -> Path:
    written(settings.tasks_dir / "mine.test.jsonl", record(0))
    bad = record(2, canonical_solution="    return x\n")
    return written(settings.tasks_dir / "mine.train.jsonl", record(1), bad, record(3, test="no test"))


def test_references_are_run_once_and_what_fails_is_listed(
    database: Database, settings: Settings, sandbox: Open
) -> None:
    fill(settings)
    told: list[tuple[int, int]] = []
    became = folder.sync(database, settings, sandbox, ["mine"], lambda *each: told.append(each))
    assert became == {"mine": Written(added=4, retired=0, moved=0, same=0)}
    assert told[-1] == (3, 3)
    with database.transaction() as tx:
        excluded = {each.placed.task.name: each.placed.excluded for each in store.standing(tx, "mine")}
    assert excluded["Mine/0"] is excluded["Mine/1"] is None
    assert (excluded["Mine/2"] or "").startswith("its own reference does not pass (failed")
    assert "no `def check(" in (excluded["Mine/3"] or "")


def test_what_did_not_change_is_not_read_again_and_needs_no_sandbox(
    database: Database, settings: Settings, sandbox: Open
) -> None:
    path = fill(settings)
    folder.sync(database, settings, sandbox, ["mine"])
    assert folder.sync(database, settings, no_sandbox, ["mine"]) == {}
    os.utime(path, ns=(1, 1))  # touched: read again, and nothing of it is new
    assert folder.sync(database, settings, no_sandbox, ["mine"]) == {"mine": Written(0, 0, 0, 4)}


def test_a_set_that_cannot_be_read_is_an_error_after_the_others_were(
    database: Database, settings: Settings, sandbox: Open
) -> None:
    fill(settings)
    (settings.tasks_dir / "broken.jsonl").write_text("{")
    with pytest.raises(ConfigurationError, match=r"broken\.jsonl, line 1"):
        folder.sync(database, settings, sandbox, ["broken", "mine"])
    with database.transaction() as tx:
        assert len(store.standing(tx, "mine")) == 4


def test_sets_that_vanished_are_retired(database: Database, settings: Settings, sandbox: Open) -> None:
    written(
        settings.tasks_dir / "easy.train.jsonl", record(7)
    )  # in place of the built-in ones: they take a while
    fill(settings)
    folder.sync(database, settings, sandbox)
    for path in settings.tasks_dir.glob("mine*"):
        path.unlink()
    assert folder.sync(database, settings, no_sandbox) == {"mine": Written(0, 4, 0, 0)}
    assert folder.sync(database, settings, no_sandbox) == {}


def test_without_a_sandbox_nothing_is_written(database: Database, settings: Settings) -> None:
    fill(settings)
    with pytest.raises(SandboxError):
        folder.sync(database, settings, no_sandbox, ["mine"])
    with database.transaction() as tx:
        assert store.sets(tx) == []


def test_a_new_benchmark_takes_its_tasks_out_of_the_train_split(
    database: Database, settings: Settings, sandbox: Open
) -> None:
    fill(settings)
    folder.sync(database, settings, sandbox, ["mine"])
    settings.benchmarks_dir.mkdir()
    written(
        settings.benchmarks_dir / "bench.jsonl", record(1, task_id="Bench/1"), record(0, task_id="Bench/0")
    )
    assert folder.sync(database, settings, no_sandbox, ["mine"])["mine"].moved == 1
    with database.transaction() as tx:
        excluded = {each.placed.task.name: each.placed.excluded for each in store.standing(tx, "mine")}
    assert excluded["Mine/1"] == "a benchmark's, never trained on (Bench/1)"
    assert excluded["Mine/0"] is None


def test_an_easy_task_of_every_kind_passes_in_the_sandbox_and_its_tests_are_counted() -> None:
    """One of each: that all references pass their tests is known without it."""
    kinds = {each.group: each.task for each in easy.tasks()}
    with Sandbox.open(None) as sandbox:
        outcomes = sandbox.run([program_of(task, task.reference) for task in kinds.values()])
    assert [(each.key, each.result) for each in outcomes if not each.passed] == []
    assert all(each.tests is not None and each.tests == each.tests_passed >= 5 for each in outcomes)
