"""The daemon of a team's track: tasks are counted instead of contents, and practising may be asked for."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.core.db import Database
from services.core.settings import Settings
from services.core.target import Target
from services.trainer.daemon import supervisor
from services.trainer.daemon.supervisor import Daemon
from services.trainer.heartbeat import Beat
from services.trainer.recipes.recipe import Recipe
from services.trainer.tasks import folder
from tests import tiny_team
from tests.integration.trainer.conftest import Trainer
from tests.integration.trainer.test_requests import FakeChild, answer, ask
from tests.integration.trainer.test_round import closed, rows, wait_for


class Office:
    """A daemon in this process, as the role of the trainer; its children are stand-ins."""

    def __init__(self, recipe: Recipe, database: Database, settings: Settings) -> None:
        self.children: list[FakeChild] = []
        self.database = database
        self.daemon = Daemon(settings, recipe, database)

    def child(self, *_: object, any_number: bool = False) -> FakeChild:
        self.children.append(FakeChild(any_number))
        return self.children[-1]

    def tick(self) -> None:
        self.daemon.tick(time.monotonic())

    @property
    def said(self) -> Any:
        self.daemon._beat()
        ((detail,),) = rows(self.database, "SELECT detail FROM heartbeats WHERE service = 'trainer'")
        return detail

    def read(self) -> None:
        """Until the tasks are read."""

        def done() -> bool:
            self.tick()
            return not self.daemon._backlog._is_reading  # type: ignore[attr-defined]

        wait_for(done)
        self.daemon._next_poll = 0.0
        self.tick()


@pytest.fixture
def office(
    team_folder: Path, team_recipe: Recipe, role_target: Callable[[str], Target], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Office]:  # fmt: skip
    monkeypatch.setattr(folder.formats, "human_eval", list)
    settings = Settings(
        adapters_dir=tmp_path, checkpoints_dir=tmp_path / "checkpoints", cache_dir=tmp_path / "cache",
        benchmarks_dir=tmp_path / "benchmarks", tasks_dir=team_folder / "tasks", check_interval=3600,
        nproc_per_node=4, allow_unsandboxed=True,
    )  # fmt: skip
    made = Office(team_recipe, Database(role_target("ratchet_trainer"), max_conn=4), settings)
    monkeypatch.setattr(supervisor, "Child", made.child)
    yield made
    made.database.close()


def test_tasks_begin_a_round_by_themselves_as_soon_as_they_are_read(office: Office) -> None:
    """The first look finds none: it reads them meanwhile, and does not wait for CHECK_INTERVAL."""
    office.tick()
    assert "reading the tasks" in office.said["message"]
    office.read()
    (child,) = office.children
    assert not child.any_number
    assert office.said["new_contents"] > office.said["needed"] == 1


def test_practising_goes_on_when_it_is_asked_for(office: Office, database: Database) -> None:
    """Also with nothing new, which begins no round by itself."""
    office.daemon._backlog.count = lambda: 0  # type: ignore[method-assign]
    office.tick()
    assert office.children == []
    assert (
        "0 new tasks of the set toy, 1 needed; `ratchet train --now` has team go on" in office.said["message"]
    )
    number = ask(database, "train", track="team")
    office.tick()
    (child,) = office.children
    assert child.any_number
    child.beat = Beat(round=1, round_id=1)
    office.tick()
    assert answer(database, number) == ("done", "round 1 has begun")


def test_while_it_is_paused_nobody_practises(office: Office, database: Database) -> None:
    """And after it is resumed the round begins that was waited for."""
    office.daemon._backlog.count = lambda: 0  # type: ignore[method-assign]
    office.tick()
    del office.daemon._backlog.count  # type: ignore[attr-defined]
    ask(database, "pause", track="team", reason="holidays")
    office.tick()
    office.read()
    assert office.children == []
    assert "paused by me" in office.said["message"]
    ask(database, "resume", track="team")
    office.read()
    assert len(office.children) == 1


def test_a_folder_that_cannot_be_read_is_what_is_waited_for(office: Office, team_folder: Path) -> None:
    """By its file, until it can be."""
    broken = team_folder / "tasks" / "toy.jsonl"
    broken.write_text("{}")
    try:
        office.tick()
        office.read()
    finally:
        broken.unlink()
    assert "toy.jsonl" in office.said["message"]
    assert office.children == []


def test_a_round_has_one_process_whatever_gpus_there_are(office: Office) -> None:
    assert office.daemon._machines.processes == 1


def test_as_many_tasks_are_new_as_the_set_may_teach(office: Office) -> None:
    """Those of the test split and of the part for validation are not."""
    office.tick()
    office.read()
    new = office.daemon._ledger.count_new_tasks("toy", 1000)
    assert 0 < new <= tiny_team.TRAIN


def test_a_process_killed_while_it_trains_is_replaced_by_one_that_goes_on(
    trainer: Trainer, team_folder: Path, database: Database, tmp_path: Path
) -> None:
    """kill -9 in the middle: one round, every iteration once; then the daemon waits for new tasks."""
    about = {
        "RECIPE": str(team_folder / "team.yaml"), "TASKS_DIR": str(team_folder / "tasks"),
        "BENCHMARKS_DIR": str(tmp_path / "benchmarks"), "ALLOW_UNSANDBOXED": "true",
    }  # fmt: skip
    daemon = trainer.start(**about, RATCHET_FAILPOINT="train.after_checkpoint")
    wait_for(lambda: "the round crashed" in trainer.log.read_text())
    daemon.terminate()
    daemon.wait()
    trainer.start(**about)
    (round_,) = wait_for(lambda: closed(database))
    assert (round_.state in {"promoted", "refused"}, round_.attempts) == (True, 2)
    steps = rows(database, "SELECT step FROM progress WHERE kind = 'train' ORDER BY step")
    assert [row.step for row in steps] == [1, 2, 3, 4]
    wait_for(
        lambda: rows(database, "SELECT 1 FROM heartbeats WHERE detail ->> 'message' LIKE '0 new tasks of%'")
    )
