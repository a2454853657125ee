"""What people ask of a track's trainer: carried out, answered once, refused in words."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from services.core.db import Database, as_json
from services.core.models import ServiceState
from services.core.settings import PROJECT, Settings
from services.core.target import Target
from services.trainer import heartbeat
from services.trainer.daemon import backlog, supervisor
from services.trainer.daemon.judge import Watched
from services.trainer.daemon.requests import Desk
from services.trainer.daemon.supervisor import Daemon
from tests.integration.trainer.conftest import Trainer, standard_library
from tests.integration.trainer.test_ledger import texts
from tests.integration.trainer.test_promotions import Life
from tests.integration.trainer.test_round import rows, wait_for

POINTS = (
    "request.before_commit",  # the champion is moved and answered for, nothing of it committed
    "request.after_commit",  # both are committed, `current` follows at the next start
)


def ask(
    database: Database, kind: str, *, key: str | None = None, track: str = "moved", **payload: Any
) -> int:
    """As the role of metrics does."""
    with database.transaction() as tx:
        number = tx.value("ask", kind=kind, track=track, payload=as_json(payload), actor="me", key=key)
    assert number is not None
    return int(number)


def answer(database: Database, number: int) -> tuple[str, str]:
    with database.transaction() as tx:
        row = tx.one("request", request=number)
    return row.state, row.message


@dataclass
class FakeChild:
    """A round's processes, which do what a test says."""

    any_number: bool
    beat: heartbeat.Beat = field(default_factory=heartbeat.Beat)
    exit_status: int | None = None
    folder: Path = Path()

    @property
    def watched(self) -> Watched:
        return Watched(since=time.monotonic(), beat=self.beat)

    def look(self) -> int | None:
        return self.exit_status

    def kill(self) -> None: ...

    def failure(self) -> None: ...

    def stop(self) -> None: ...


class Office:
    """A daemon in this process, as the role of the trainer; its children are stand-ins."""

    def __init__(self, life: Life, target: Target, adapters: Path) -> None:
        self.life = life
        self.database = Database(target, max_conn=4)
        self.children: list[FakeChild] = []
        settings = Settings(
            adapters_dir=adapters,
            checkpoints_dir=adapters / "checkpoints",
            min_new_files=1000,
            check_interval=3600,
        )
        self.daemon = Daemon(settings, life.recipe, self.database)

    def child(self, *_: object, any_number: bool = False) -> FakeChild:
        self.children.append(FakeChild(any_number))
        return self.children[-1]

    def asked(self, kind: str, **payload: Any) -> tuple[str, str]:
        number = ask(self.life.database, kind, **payload)
        self.tick()
        return answer(self.life.database, number)

    def tick(self) -> None:
        self.daemon.tick(time.monotonic())

    @property
    def said(self) -> Any:
        self.daemon._beat()
        return rows(self.life.database, "SELECT state, detail FROM heartbeats WHERE service = 'trainer'")[0]


@pytest.fixture
def life(database: Database, store: Callable[[list[str]], None], tmp_path: Path) -> Life:
    store(texts(60))
    return Life(database, tmp_path)


@pytest.fixture
def office(
    life: Life, role_target: Callable[[str], Target], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Office]:
    made = Office(life, role_target("ratchet_trainer"), tmp_path)
    monkeypatch.setattr(supervisor, "Child", made.child)
    yield made
    made.database.close()


@pytest.fixture
def at_work(life: Life, office: Office) -> Office:
    """The daemon has the track, in which there are two rounds."""
    life.round(), life.round()
    life.ledger.release(life.lease)
    office.tick()
    return office


def test_moves_are_made_and_told(at_work: Office) -> None:
    """Every kind of move by its request: the ledger, `current` and the answer agree."""
    line = at_work.life.champions.line
    assert at_work.asked("rollback", reason="worse") == ("done", "round-0001 is the champion again")
    assert (at_work.life.current, line().moves[-1].actor, line().moves[-1].reason) == (
        "round-0001",
        "me",
        "worse",
    )
    assert at_work.asked("promote", adapter="round-0002") == ("done", "round-0002 is the champion now")
    assert at_work.life.current == "round-0002"
    assert at_work.asked("pin")[1] == "round-0002 stays the champion whatever rounds bring"
    assert at_work.asked("unpin")[0] == "done"
    state, message = at_work.asked("reject", adapter="round-0002")
    assert (state, message) == (
        "done", "round-0001 is the champion again; round-0002 can never be the champion again",
    )  # fmt: skip
    assert at_work.life.current == "round-0001"


@pytest.mark.parametrize(
    ("kind", "payload", "says"),
    [
        ("promote", {"adapter": "round-0009"}, "the track moved has no adapter round-0009: did you mean"),
        ("promote", {}, "promote needs the name of an adapter"),
        ("promote", {"adapter": {"a": 1}}, "promote needs the name of an adapter"),
        ("promote", {"adapter": "round-0002"}, "round-0002 is the champion of moved already"),
        ("unpin", {}, "is not pinned"),
        ("forget", {"target": "nowhere"}, "there is no source 'nowhere'"),
        ("forget", {"target": "repo"}, "logs in as ratchet_trainer, and only the owner of the tables may"),
        ("forget", {"target": "repo"}, "type `ratchet forget repo` where `ratchet migrate` runs"),
        ("forget", {}, "was not said"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    at_work: Office, kind: str, payload: dict[str, Any], says: str
) -> None:
    """Nothing is moved; the reason says what to do instead."""
    before = rows(at_work.life.database, "SELECT count(*) FROM promotions")
    number = ask(at_work.life.database, kind, **payload)
    at_work.tick()
    wait_for(lambda: answer(at_work.life.database, number)[0] != "waiting")
    state, message = answer(at_work.life.database, number)
    assert state == "failed"
    assert says in message
    assert rows(at_work.life.database, "SELECT count(*) FROM promotions") == before


def test_a_fault_is_answered_and_the_daemon_lives(at_work: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind of the error to the asker, the traceback to the log."""
    monkeypatch.setattr("services.trainer.daemon.requests.outcome", lambda *_: 1 / 0)
    state, message = at_work.asked("rollback")
    assert (state, at_work.life.current) == ("failed", "round-0002")
    assert "ZeroDivisionError" in message
    at_work.tick()


def test_a_round_begins_with_what_there_is(at_work: Office) -> None:
    """Though too few contents are new; answered once the round has its number."""
    number = ask(at_work.life.database, "train")
    at_work.tick()
    (child,) = at_work.children
    assert child.any_number
    at_work.tick()
    assert answer(at_work.life.database, number)[0] == "waiting"
    child.beat = heartbeat.Beat(counter=1, state=ServiceState.TRAINING, round=3)
    at_work.tick()
    assert answer(at_work.life.database, number) == ("done", "round 3 has begun")
    assert at_work.asked("train") == ("done", "a round is under way already")


def test_a_round_that_does_not_begin_is_told(at_work: Office) -> None:
    """As when all that is new is held out: the child's own words."""
    number = ask(at_work.life.database, "train")
    at_work.tick()
    (child,) = at_work.children
    child.beat, child.exit_status = heartbeat.Beat(counter=1, message="nothing to train on yet: held out"), 0
    at_work.tick()
    at_work.tick()
    assert answer(at_work.life.database, number) == (
        "failed", "no round has begun: nothing to train on yet: held out",
    )  # fmt: skip


def test_nothing_to_train_on_is_said_at_once(at_work: Office) -> None:
    """No child is started for it."""
    with at_work.life.database.transaction() as tx:
        tx._cursor.execute("UPDATE backlog SET is_new = false")
    state, message = at_work.asked("train")
    assert state == "failed"
    assert message.startswith("there is nothing to train on: 0 new contents that score 70 or more")
    assert at_work.children == []


def test_while_it_is_paused_no_round_begins(at_work: Office) -> None:
    """The heartbeat says so and by whom; a request for a round is refused; `resume` ends it."""
    hurried = at_work.daemon._settings.model_copy(update={"min_new_files": 1})
    at_work.daemon._backlog = backlog.of(hurried, at_work.life.recipe, at_work.database, at_work.life.ledger)
    assert at_work.asked("pause", reason="maintenance")[0] == "done"
    assert at_work.children == []
    state, detail = at_work.said
    assert (state, detail["paused"]) == ("idle", True)
    assert detail["message"].startswith("paused by me since ")
    assert "(maintenance): `ratchet resume` ends it" in detail["message"]
    assert at_work.asked("train")[0] == "failed"
    assert "already" in at_work.asked("pause")[1]
    assert at_work.asked("resume") == ("done", "new rounds may begin")
    assert len(at_work.children) == 1
    assert at_work.said.detail["paused"] is False
    assert at_work.asked("resume") == ("done", "it was not paused")


def test_a_running_round_goes_on_while_paused(life: Life, office: Office) -> None:
    """One that is open is taken up again, by itself and when asked."""
    life.open()
    life.ledger.release(life.lease)
    number = ask(life.database, "pause")
    office.tick()
    assert answer(life.database, number)[0] == "done"
    assert len(office.children) == 1
    assert office.said.detail["paused"] is True


def test_asking_again_with_the_same_key_changes_nothing(at_work: Office) -> None:
    """One request; the same key for another one is refused."""
    first = ask(at_work.life.database, "pause", key="k")
    assert ask(at_work.life.database, "pause", key="k") == first
    with at_work.life.database.transaction() as tx:
        assert tx.value("ask", kind="resume", track="moved", payload=as_json({}), actor="me", key="k") is None


def test_a_trainer_that_owns_the_tables_forgets(
    life: Life, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The texts are gone when it is answered, in the name of who asked."""
    owned = Office(life, target, tmp_path)
    monkeypatch.setattr(supervisor, "Child", owned.child)
    life.ledger.release(life.lease)
    owned.tick()
    number = ask(life.database, "forget", target="repo", reason="it left")
    owned.tick()
    wait_for(lambda: answer(life.database, number)[0] != "waiting")
    state, message = answer(life.database, number)
    owned.database.close()
    assert state == "done", message
    assert "60 texts are gone" in message
    assert rows(life.database, "SELECT count(*) FROM contents WHERE text <> ''")[0].count == 0
    (said,) = rows(life.database, "SELECT actor, reason, state FROM forgettings")
    assert (said.actor, said.reason, said.state) == ("me", "it left", "done")


def test_a_forgetting_under_way_hurries_no_round(at_work: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon looks for new code when it would anyway, not with every look at what was asked."""
    over = threading.Event()
    monkeypatch.setattr(Desk, "_forget", lambda desk, request: over.wait(60) and desk.done(request, "gone"))
    number = ask(at_work.life.database, "forget", target="repo")
    due = at_work.daemon._next_poll
    for _ in range(3):
        at_work.tick()
    assert at_work.daemon._next_poll == due
    assert answer(at_work.life.database, number)[0] == "waiting"
    over.set()
    wait_for(lambda: answer(at_work.life.database, number) == ("done", "gone"))


def test_what_nobody_took_up_for_an_hour_is_refused(at_work: Office) -> None:
    """By the next trainer that comes, and by whoever asks next."""
    number = ask(at_work.life.database, "rollback")
    with at_work.life.database.transaction() as tx:
        tx._cursor.execute("UPDATE requests SET asked_at = now() - interval '61 minutes'")
    at_work.tick()
    state, message = answer(at_work.life.database, number)
    assert (state, at_work.life.current) == ("failed", "round-0002")
    assert "within an hour" in message


def test_every_answer_is_an_event(at_work: Office) -> None:
    """With who asked, what, and what came of it."""
    number = ask(at_work.life.database, "promote", adapter="round-0001")
    at_work.tick()
    (event,) = rows(at_work.life.database, "SELECT * FROM events WHERE kind LIKE 'request.%%'")
    assert (event.kind, event.track, event.adapter) == ("request.done", "moved", "round-0001")
    assert event.payload == {
        "request": number, "asked": "promote", "actor": "me", "message": "round-0001 is the champion now",
    }  # fmt: skip


@pytest.mark.parametrize(
    "statement", ["UPDATE requests SET message = 'other'", "UPDATE requests SET state = 'failed'"]
)
def test_an_answer_stays(at_work: Office, statement: str) -> None:
    """Not even the owner changes it."""
    at_work.asked("unpin")
    with pytest.raises(Exception, match="has its answer"), at_work.life.database.transaction() as tx:
        tx._cursor.execute(statement)


@pytest.mark.parametrize("point", POINTS)
def test_killed_while_it_moves_a_champion_it_has_moved_it_once(
    point: str, life: Life, target: Target, tmp_path: Path
) -> None:
    """kill -9 before and after the commit: one move, one answer, `current` where the ledger says."""
    life.round(), life.round()
    life.ledger.release(life.lease)
    number = ask(life.database, "rollback", reason="worse")
    recipe = tmp_path / "moved.yaml"
    recipe.write_text("base_model: ./model\nmethod: lora\n")
    assert _daemon(target, recipe, tmp_path, RATCHET_FAILPOINT=point).wait(60) == -signal.SIGKILL
    before = answer(life.database, number)[0]
    assert before == ("waiting" if point == POINTS[0] else "done")
    with life.database.transaction() as tx:  # the dead one's lease need not run out here
        tx._cursor.execute("UPDATE tracks SET lease_expires_at = now()")
    daemon = _daemon(target, recipe, tmp_path)
    try:
        wait_for(lambda: answer(life.database, number)[0] == "done" and life.current == "round-0001", 30)
    finally:
        daemon.terminate()
        daemon.wait(30)
    assert [move.kind for move in life.champions.line().moves].count("rolled_back") == 1
    assert rows(life.database, "SELECT count(*) FROM events WHERE kind = 'request.done'")[0][0] == 1


def test_a_round_is_asked_for(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database
) -> None:
    """A real daemon that waits for a thousand contents trains on sixty when it is told to."""
    store(standard_library(60))
    trainer.start(MIN_NEW_FILES="1000", CHECK_INTERVAL="3600")
    wait_for(lambda: rows(database, "SELECT 1 FROM tracks WHERE lease_holder IS NOT NULL"))
    number = ask(database, "train", track="tiny")
    wait_for(lambda: answer(database, number)[0] != "waiting")
    assert answer(database, number) == ("done", "round 1 has begun")
    assert rows(database, "SELECT state FROM rounds WHERE number = 1")


def _daemon(target: Target, recipe: Path, home: Path, **others: str) -> "subprocess.Popen[bytes]":
    environment = {
        **os.environ,
        "POSTGRES_HOST": target.host,
        "POSTGRES_PORT": str(target.port),
        "POSTGRES_DB": target.dbname,
        "POSTGRES_USER": target.user,
        "POSTGRES_PASSWORD": target.password.get_secret_value(),
        "RECIPE": str(recipe),
        "ADAPTERS_DIR": str(home),
        "CHECKPOINTS_DIR": str(home / "checkpoints"),
        "LOGS_DIR": str(home / "logs"),
        "MIN_NEW_FILES": "1000",
        **others,
    }
    return subprocess.Popen([sys.executable, "-m", "services.trainer"], cwd=PROJECT, env=environment)
