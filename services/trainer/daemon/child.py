"""The processes of a round on this machine, in a process group of their own, away from the daemon."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from services.core.process import SHARES_CORES, die_with_parent
from services.core.settings import PROJECT, Settings
from services.trainer import failure, heartbeat
from services.trainer.daemon.judge import Watched
from services.trainer.daemon.machines import Machines
from services.trainer.ledger import ANY_NUMBER_VARIABLE, LEASE_VARIABLE, Lease

log = logging.getLogger(__name__)
COMPILED = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
STOP_CHILD = 25.0  # seconds a child has to save and leave before it is killed


class Child:
    """A round's processes here. On the first machine they have the lease and are watched by their beats."""

    def __init__(
        self,
        settings: Settings,
        track: str,
        machines: Machines,
        lease: Lease | None,
        *,
        any_number: bool = False,
    ) -> None:
        """any_number: a round may begin with fewer new contents, or tasks, than are wanted."""
        self.folder = settings.checkpoints_dir / track
        self.folder.mkdir(parents=True, exist_ok=True)
        logs = self.folder / f"torchrun-{machines.number}"
        shutil.rmtree(logs, ignore_errors=True)
        if lease is not None:  # other machines may see the same folder
            (self.folder / heartbeat.FILE_NAME).unlink(missing_ok=True)
            failure.clear(self.folder)
        environment = {
            **SHARES_CORES,
            **os.environ,
            LEASE_VARIABLE: "" if lease is None else str(lease.token),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH")))),
            "TOKENIZERS_PARALLELISM": "false",
            "TQDM_DISABLE": "1",  # the daemon shows progress, a log wants lines
            "HF_HOME": os.environ.get("HF_HOME", str((settings.cache_dir / "huggingface").absolute())),
        }
        for variable, folder in COMPILED.items():  # kept from round to round
            environment.setdefault(variable, str((settings.cache_dir / folder).absolute()))
        if any_number:
            environment.update({"MIN_NEW_FILES": "1", ANY_NUMBER_VARIABLE: "1"})
        environment.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")  # less is wasted
        environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // machines.processes)))
        parent = os.getpid()
        self.process = subprocess.Popen(
            _command(machines, logs),
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509  it takes no lock
        )
        self.watched = Watched(since=time.monotonic())

    def look(self) -> int | None:
        """Take in the newest beat; the exit status, or None while it runs."""
        status = self.process.poll()
        self.watched = self.watched.seen(heartbeat.read(self.folder), time.monotonic())
        return status

    def failure(self) -> failure.Failure | None:
        """What the process that failed first said."""
        return failure.first(self.folder)

    def stop(self, seconds: float = STOP_CHILD) -> None:
        """SIGTERM, so that it saves; after `seconds` the whole group is killed."""
        self._signal(signal.SIGTERM)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            log.warning("the round did not leave in %.0f s: killing it", seconds)
        self.kill()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass


def _command(machines: Machines, logs: Path) -> list[str]:
    start = [sys.executable, "-m", "services.trainer.launch"]
    return [*start, *machines.options(logs), "-m", "services.trainer.round_process"]
