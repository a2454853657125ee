"""What must hold before `ratchet up` starts anything: nobody else is here, room, a free port."""

import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from services.cli.stack.processes import SUPERVISOR, PidFiles
from services.core.errors import ConfigurationError, StackError

LEAST_ROOM = 500_000_000  # bytes: an empty database, the demonstration code and logs


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Be the only supervisor of this home, for as long as this process lives, however it ends.

    Raises StackError when another one is, or when the home cannot be written.
    """
    files = PidFiles(home)
    try:
        files.directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(files.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise StackError(
            f"RATCHET_HOME={home} cannot be written ({exc.strerror}): set it to a directory of this user"
        ) from exc
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            other = files.read(SUPERVISOR)
            who = f"process {other.pid}" if other else "another process"
            raise StackError(
                f"Ratchet already runs in {home} ({who}): `ratchet status` shows it, `ratchet down` stops it"
            ) from exc
        files.write(SUPERVISOR, os.getpid())
        try:
            yield
        finally:
            files.forget(SUPERVISOR)
    finally:
        os.close(lock)


def check_room(home: Path) -> None:
    """Raises StackError when the disk is as good as full: PostgreSQL would end with it."""
    free = shutil.disk_usage(home).free
    if free < LEAST_ROOM:
        raise StackError(
            f"RATCHET_HOME={home}: {free / 1e6:.0f} MB are free there, at least {LEAST_ROOM / 1e6:.0f} MB are"
            " needed to start: make room, or set RATCHET_HOME to another disk (`ratchet doctor` looks at all)"
        )


def check_port(host: str, port: int, setting: str = "METRICS_PORT") -> None:
    """Raises ConfigurationError, naming the setting, when no service could listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gunicorn does
        try:
            probe.bind((host, port))
        except OSError as exc:
            raise ConfigurationError(
                f"{setting}={port} on {host} cannot be used ({exc.strerror}{_user_of(port)}):"
                f" stop what uses it, or set {setting} to a free one"
            ) from exc


def _user_of(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:2] == (port,)
            if listens and connection.pid:
                return f" by process {connection.pid}, {psutil.Process(connection.pid).name()}"
    except (psutil.Error, OSError):
        pass
    return ""
