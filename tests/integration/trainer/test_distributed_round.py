"""A whole round on two machines, one process each over gloo, against the same round of one process."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.core.db import Database
from services.core.settings import PROJECT
from services.trainer import publish
from tests import tiny_model as tiny
from tests.integration.trainer.conftest import Trainer, standard_library
from tests.integration.trainer.test_round import closed, wait_for

METHODS: dict[str, dict[str, Any]] = {
    "lora": {"method": "lora"},
    "full": {"method": "full", "lora_r": None, "learning_rate": 0.002},
}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


class Follower:
    """The second machine's trainer: the same settings, but no database."""

    def __init__(self, trainer: Trainer, **environment: str) -> None:
        there = {name: one for name, one in trainer._environment.items() if "POSTGRES" not in name}
        self.log = trainer.log.with_name("follower.log")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "services.trainer"],
                cwd=PROJECT, env={**there, **environment}, stdout=log, stderr=log,
            )  # fmt: skip

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


def write_recipe(folder: Path, base: Path, method: str, accumulated: int) -> str:
    lines = dict(line.split(": ", 1) for line in tiny.RECIPE.format(model=base).splitlines())
    short = {"max_steps": 6, "eval_steps": 3, "gradient_accumulation_steps": accumulated}
    fields = {**lines, **METHODS[method], **short}
    path = folder / "track.yaml"  # one name: what is held out follows from it
    path.write_text("".join(f"{key}: {value}\n" for key, value in fields.items() if value is not None))
    return str(path)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("method", METHODS)
def test_two_machines_close_the_round_that_one_process_does(
    method: str,
    trainer: Trainer,
    tiny_model: Path,
    store: Callable[[list[str]], None],
    database: Database,
    tmp_path: Path,
) -> None:
    """The same losses for the same effective batch; the second machine never sees the database."""
    store(standard_library(60))
    current = trainer.adapters / "track" / "current"
    trainer.start(RECIPE=write_recipe(tmp_path, tiny_model, method, 2))
    (one,) = wait_for(lambda: closed(database), 150)
    wait_for(current.is_symlink)
    trainer.stop()
    shutil.rmtree(trainer.adapters)
    with database.transaction() as tx:
        tx._cursor.execute("SET LOCAL session_replication_role = replica")  # promotions are append-only
        tx._cursor.execute("TRUNCATE tracks CASCADE")  # as if there had been no round

    shared = {
        "RECIPE": write_recipe(tmp_path, tiny_model, method, 1),
        "NNODES": "2",
        "RDZV_ENDPOINT": f"127.0.0.1:{free_port()}",
        "NPROC_PER_NODE": "1",
    }
    follower = Follower(trainer, **shared, NODE_RANK="1")
    try:
        trainer.start(**shared, NODE_RANK="0")
        (two,) = wait_for(lambda: closed(database), 150)
        wait_for(current.is_symlink)
        assert follower.stop() == 0
    except BaseException:
        follower.process.kill()
        sys.stderr.write(follower.log.read_text()[-6000:])
        raise

    assert (one.state, two.state) == ("promoted", "promoted"), two.verdict
    for figure in ("train_loss", "eval_loss", "bits_per_byte"):
        assert two.training[figure] == pytest.approx(one.training[figure], abs=1e-4)
    for subject in ("base", "candidate"):
        expected = one.verdict["bits_per_byte"][subject]
        assert two.verdict["bits_per_byte"][subject] == pytest.approx(expected, abs=1e-4)
    assert publish.verify(current)["kind"] == ("model" if method == "full" else "adapter")


def test_two_processes_of_one_machine_stop_and_go_on(
    trainer: Trainer,
    tiny_model: Path,
    store: Callable[[list[str]], None],
    database: Database,
    tmp_path: Path,
) -> None:
    """Both leave at the same step, with one checkpoint, from which both go on."""
    store(standard_library(60))
    recipe = Path(write_recipe(tmp_path, tiny_model, "lora", 1))
    recipe.write_text(recipe.read_text().replace("max_steps: 6", "epochs: 5"))
    settings = {"RECIPE": str(recipe), "NPROC_PER_NODE": "2"}
    trainer.start(**settings)
    wait_for(lambda: "train step 4:" in trainer.log.read_text(), 150)
    trainer.stop()
    assert not closed(database)
    found = (trainer.checkpoints / "track" / "round-0001").glob("checkpoint-*")
    newest = max(int(path.name.rpartition("-")[2]) for path in found)
    trainer.start(**settings)
    (round_,) = wait_for(lambda: closed(database), 150)
    assert round_.state == "promoted", round_.verdict
    assert f"going on after step {newest} of" in trainer.log.read_text()
