"""PostgreSQL's first process: what it says of itself in postmaster.pid, and how it is stopped."""

import logging
import signal
from pathlib import Path

import psutil

from services.core.errors import StackError

log = logging.getLogger(__name__)

STOP_TIMEOUT = 8.0  # seconds for each of: fast shutdown, immediate shutdown
NO_PROCESS = 2**31 - 2  # a pid above the kernel's limit of 2**22
STATE = 7  # line of postmaster.pid


def is_ready(data: Path, pid: int) -> bool:
    """Whether the process `pid` serves the cluster in `data` and takes connections."""
    lines = _lines(data)
    return len(lines) > STATE and lines[0] == str(pid) and lines[STATE] == "ready"


def stop_leftover(data: Path) -> None:
    """Stop a server that outlived its parent; see that a pid now another program's stops no start."""
    lines = _lines(data)
    if not lines or not lines[0].isdecimal():
        return
    try:
        leftover = psutil.Process(int(lines[0]))
        command = leftover.cmdline()
    except psutil.ZombieProcess:
        command = []
    except psutil.NoSuchProcess:
        return
    if command and Path(command[0]).name == "postgres" and str(data) in command:
        log.warning("stopping the PostgreSQL server an earlier run left behind (process %s)", lines[0])
        stop(leftover)
        return
    # Not removed: PostgreSQL learns from the other lines whether the dead server's children still run.
    _file(data).write_text("\n".join([str(NO_PROCESS), *lines[1:]]) + "\n", encoding="utf-8")


def stop(server: psutil.Process) -> None:
    """SIGINT: fast shutdown, SIGQUIT: immediate one; PostgreSQL recovers from the log after that.

    Raises StackError when it lives on.
    """
    for number in (signal.SIGINT, signal.SIGQUIT):
        try:
            server.send_signal(number)
            server.wait(STOP_TIMEOUT)
        except psutil.NoSuchProcess:
            return
        except psutil.TimeoutExpired:
            continue
        return
    raise StackError(f"PostgreSQL (process {server.pid}) does not stop: kill it by hand")


def _lines(data: Path) -> list[str]:
    try:
        return [line.strip() for line in _file(data).read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        return []


def _file(data: Path) -> Path:
    return data / "postmaster.pid"
