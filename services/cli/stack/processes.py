"""Which processes are ours, and how to end them: never one that merely has the same number.

A process is ours when the supervisor recorded its pid together with its time of creation, or when
its environment carries the marker that every part, and whatever it starts, inherits.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

MARKER = "RATCHET_STACK"  # environment: the home of the stack that a process belongs to
PART = "RATCHET_PART"  # environment: which part of it
SUPERVISOR = "supervisor"  # pid file of `ratchet up` itself
SERVER = "postgres"  # pid file of the embedded PostgreSQL
CLOCK_TOLERANCE = 2.0  # seconds a time of creation shifts when the clock is set; no number comes back so soon
POLL = 0.02  # seconds
KILL_WAIT = 5.0  # seconds the kernel gets to reap a killed process


@dataclass(frozen=True)
class Recorded:
    """A process as a pid file names it."""

    name: str
    pid: int
    created: float  # seconds since the epoch

    def process(self) -> psutil.Process | None:
        """The process, if it is still that one."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created) <= CLOCK_TOLERANCE
            return process if same and is_alive(process) else None
        except psutil.NoSuchProcess:
            return None


class PidFiles:
    """RATCHET_HOME/run: one <name>.pid a process, with its pid and its time of creation."""

    def __init__(self, home: Path) -> None:
        self.directory = home / "run"

    def write(self, name: str, pid: int) -> None:
        """Record the running process `pid`; forgets the name when it has ended meanwhile."""
        try:
            created = psutil.Process(pid).create_time()
        except psutil.NoSuchProcess:
            self.forget(name)
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        unfinished = self.directory / f".{name}.{os.getpid()}"
        unfinished.write_text(json.dumps({"pid": pid, "created": created}) + "\n", encoding="ascii")
        unfinished.replace(self.directory / f"{name}.pid")

    def read(self, name: str) -> Recorded | None:
        """What was recorded; None when nothing was, or the file is damaged."""
        try:
            record = json.loads((self.directory / f"{name}.pid").read_text(encoding="ascii"))
            return Recorded(name, int(record["pid"]), float(record["created"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def forget(self, name: str) -> None:
        (self.directory / f"{name}.pid").unlink(missing_ok=True)

    def all(self) -> list[Recorded]:
        names = sorted(path.stem for path in self.directory.glob("*.pid"))
        return [record for name in names if (record := self.read(name))]


def marked(home: Path, part: str | None = None) -> Iterator[psutil.Process]:
    """The processes that carry this home's marker (and this part's), but us and our ancestors."""
    spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        try:
            environment = process.environ() if process.pid not in spared else {}
        except (psutil.Error, OSError):
            continue  # gone, a zombie, the kernel's, or another user's
        if environment.get(MARKER) == str(home) and part in (None, environment.get(PART)):
            yield process


def family(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """The processes and all that descend from them."""
    found = {}
    for process in processes:
        found[process.pid] = process
        try:
            found.update((child.pid, child) for child in process.children(recursive=True))
        except psutil.NoSuchProcess:
            continue
    return list(found.values())


def end(processes: Iterable[psutil.Process], patience: float) -> list[psutil.Process]:
    """SIGTERM them, SIGKILL whatever lives `patience` seconds later; those that had to be killed."""
    processes = list(processes)
    for process in processes:
        _send(process.terminate)
    stubborn = wait(processes, patience)
    for process in stubborn:
        _send(process.kill)
    wait(stubborn, KILL_WAIT)
    return stubborn


def wait(processes: Iterable[psutil.Process], patience: float) -> list[psutil.Process]:
    """Wait until all have ended, so many seconds at most; those that live on."""
    deadline = time.monotonic() + patience
    living = [process for process in processes if is_alive(process)]
    while living and time.monotonic() < deadline:
        time.sleep(POLL)
        living = [process for process in living if is_alive(process)]
    return living


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs. A zombie has ended: only its parent can bury it, and may never do so."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _send(signal_it: Callable[[], None]) -> None:
    with suppress(psutil.NoSuchProcess):
        signal_it()
