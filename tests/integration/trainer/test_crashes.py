"""kill -9 at named points: after a restart nothing is lost, trained twice or half published."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from services.core.db import Database
from services.trainer import publish
from tests.integration.trainer.conftest import Trainer, standard_library
from tests.integration.trainer.test_round import closed, rows, wait_for

POINTS = (
    "round.after_open",  # snapshot taken, nothing trained
    "train.after_checkpoint",  # in the middle of training
    "train.before_seal",  # a checkpoint that is there but not marked as complete
    "round.after_train",  # trained, not judged
    "publish.after_rename",  # the adapter has its name, the ledger does not know it
    "publish.after_commit",  # the ledger knows it, `current` does not point to it
)


@pytest.mark.parametrize("point", POINTS)
def test_a_child_killed_anywhere_loses_nothing(
    point: str, trainer: Trainer, store: Callable[[list[str]], None], database: Database
) -> None:
    """Killed at the point, then started again without it: one round, promoted, whole, recorded once."""
    store(standard_library(60))
    daemon = trainer.start(RATCHET_FAILPOINT=point)
    wait_for(lambda: "the round crashed" in trainer.log.read_text() or closed(database))
    # The last point takes the daemon along: its lease has to run out first. The others save that time.
    daemon.send_signal(signal.SIGKILL if point == POINTS[-1] else signal.SIGTERM)
    daemon.wait()
    trainer.start()
    wait_for(lambda: closed(database))
    current = trainer.adapters / "tiny" / "current"
    wait_for(current.is_symlink)
    assert [row.state for row in rows(database, "SELECT state FROM rounds WHERE number = 1")] == ["promoted"]
    manifest = publish.verify(current)
    ((recorded,),) = rows(
        database, "SELECT manifest FROM adapters WHERE track = 'tiny' AND directory = 'round-0001'"
    )
    assert manifest == recorded
    assert not list(current.parent.glob(f"{publish.TEMPORARY}*"))
    snapshot = rows(database, "SELECT count(*) FROM round_contents WHERE role = 'train' AND round_id = 1")
    assert rows(database, "SELECT count(*) FROM trained") == snapshot


def test_a_killed_daemon_takes_its_children_along(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database
) -> None:
    """kill -9 of the daemon leaves neither torchrun nor a training process behind."""
    store(standard_library(60))
    daemon = trainer.start()
    child = wait_for(lambda: psutil.Process(daemon.pid).children(recursive=True))
    wait_for(lambda: rows(database, "SELECT 1 FROM rounds"))
    child = psutil.Process(daemon.pid).children(recursive=True)
    os.kill(daemon.pid, signal.SIGKILL)
    daemon.wait()
    _, alive = psutil.wait_procs(child, 60)
    assert alive == []


@pytest.fixture
def long_round(recipe_file: Path) -> None:
    """No early stopping: the round trains for seconds after its first step."""
    recipe_file.write_text(recipe_file.read_text() + "early_stopping_patience: 1000\n")


@pytest.mark.usefixtures("long_round")
def test_a_stuck_child_is_killed_and_the_round_finished(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database
) -> None:
    """SIGSTOP of the training process: the heartbeat says stalled, then the round is taken up again."""
    store(standard_library(60))
    daemon = trainer.start(STALL_TIMEOUT="3")
    wait_for(lambda: rows(database, "SELECT 1 FROM progress"))
    for process in psutil.Process(daemon.pid).children(recursive=True):
        process.suspend()
    wait_for(lambda: rows(database, "SELECT 1 FROM heartbeats WHERE state = 'stalled'"))
    assert wait_for(lambda: closed(database))[0].state == "promoted"


def test_only_one_of_two_trainers_has_the_track(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database
) -> None:
    """The second stands by, and takes over when the first stops."""
    first = trainer.start(MIN_NEW_FILES="1000")
    wait_for(lambda: rows(database, "SELECT 1 FROM heartbeats WHERE state = 'idle'"))
    second = trainer.start(MIN_NEW_FILES="1000")
    wait_for(lambda: rows(database, "SELECT 1 FROM heartbeats WHERE state = 'standby'"))
    first.terminate()
    assert first.wait(60) == 0
    wait_for(lambda: rows(database, f"SELECT 1 FROM tracks WHERE lease_holder LIKE '%:{second.pid}'"))


@pytest.mark.usefixtures("long_round")
def test_a_stopped_trainer_leaves_at_once_and_goes_on_later(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database
) -> None:
    """SIGTERM while it trains: out with status 0; the round stays open and is finished later."""
    store(standard_library(60))
    daemon = trainer.start()
    wait_for(lambda: rows(database, "SELECT 1 FROM progress"))
    daemon.terminate()
    assert daemon.wait(60) == 0
    open_rounds = rows(database, "SELECT attempts FROM rounds WHERE state = 'open'")
    if open_rounds:  # it may have been faster than the signal
        assert open_rounds[0].attempts == 0
        trainer.start()
    assert wait_for(lambda: closed(database))[0].state == "promoted"


def test_a_missing_model_is_said_and_nothing_is_lost(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database, recipe_file: object
) -> None:
    """A base model that is not there: state error with its name, the contents stay new."""
    store(standard_library(60))
    missing = trainer.checkpoints.parent / "missing.yaml"
    missing.write_text("base_model: ./no-such-model\nmethod: lora\n")
    trainer.start(RECIPE=str(missing))
    ((message,),) = wait_for(
        lambda: rows(database, "SELECT detail ->> 'message' FROM heartbeats WHERE state = 'error'")
    )
    assert "no-such-model" in message
    assert rows(database, "SELECT 1 FROM trained") == []


@pytest.fixture
def small_disk(trainer: Trainer) -> Iterator[Path]:
    """ADAPTERS_DIR on a file system of 64 kB; `mount` may be refused, then the test is skipped."""
    trainer.adapters.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(trainer.adapters)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system of a given size needs the right to mount")
    yield trainer.adapters
    trainer.stop()
    subprocess.run(["umount", str(trainer.adapters)], check=True)


def test_a_full_disk_is_said_and_the_round_finished_when_there_is_room(
    trainer: Trainer, small_disk: Path, store: Callable[[list[str]], None], database: Database
) -> None:
    """No space to publish: an error that names the folder, no crash counted, nothing half published."""
    store(standard_library(60))
    trainer.start()
    ((message,),) = wait_for(
        lambda: rows(database, "SELECT detail ->> 'message' FROM heartbeats WHERE state = 'error'")
    )
    assert str(small_disk) in message
    assert "No space left on device" in message
    assert rows(database, "SELECT 1 FROM trained") == []
    assert not (small_disk / "tiny" / "current").exists()
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    assert wait_for(lambda: closed(database))[0].state == "promoted"
    wait_for((small_disk / "tiny" / "current").is_symlink)
    publish.verify(small_disk / "tiny" / "current")
