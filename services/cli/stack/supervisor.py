"""The supervisor: starts the parts of a local stack, starts again what crashes, stops all.

Every part is a session of its own, so that Ctrl-C in the terminal is for us alone, and learns our
pid, so that the kernel tells it when we die. Use it from one thread that lives as long as the
stack: the kernel ends a part when the thread that started it ends.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil

from services.cli.stack import rotation
from services.cli.stack.processes import MARKER, PART, SERVER, PidFiles, end, family, marked
from services.core.errors import RatchetError
from services.core.settings import PROJECT
from services.core.target import Target

BACKOFF_FIRST, BACKOFF_MAX = 1.0, 30.0  # seconds before a crashed part is started again
STEADY = 60.0  # seconds a part must run for its crashes to be forgiven
STOP_TICK = 0.02  # seconds
LEFTOVER_PATIENCE = 2.0  # seconds a part's own children get after it has ended
Say = Callable[[str], None]


class Server(Protocol):
    """What the supervisor asks of an embedded PostgreSQL."""

    @property
    def pid(self) -> int | None: ...
    def start(self) -> Target: ...
    def stop(self) -> None: ...


@dataclass(frozen=True)
class Part:
    """One service of the stack."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    patience: float = 12.0  # seconds between SIGTERM and the killing of its whole process tree


@dataclass
class Run:
    """How a part, or the database server, is doing."""

    name: str
    process: subprocess.Popen[bytes] | None = None
    crashes: int = 0  # in a row
    restarts: int = 0  # in all
    started: float = field(default_factory=time.monotonic)
    due: float | None = None  # monotonic seconds at which it is started again

    def crashed(self, now: float) -> float:
        """Count a crash; after how many seconds to start again."""
        self.crashes = 1 if now - self.started > STEADY else self.crashes + 1
        wait = backoff(self.crashes)
        self.due = now + wait
        return wait

    def restarted(self, now: float) -> None:
        self.restarts += 1
        self.started, self.due = now, None


def backoff(crashes: int) -> float:
    """Seconds to wait after so many crashes in a row."""
    return min(BACKOFF_FIRST * 2.0 ** (crashes - 1), BACKOFF_MAX)


class Supervisor:
    """Runs parts, and the database server if it is ours; tells through `say` what it had to do."""

    def __init__(self, home: Path, say: Say, server: Server | None = None) -> None:
        self._home = home
        self._parts: dict[str, Part] = {}  # in the order in which they start and stop
        self._runs: dict[str, Run] = {}
        self._server = server
        self._server_run = Run(SERVER)
        self._say = say
        self._files = PidFiles(home)

    @property
    def restarts(self) -> dict[str, int]:
        return {run.name: run.restarts for run in [*self._runs.values(), self._server_run]}

    def start_server(self) -> Target:
        """Start the database server: before the parts, which need its address."""
        assert self._server is not None
        target = self._server.start()
        if self._server.pid is not None:
            self._files.write(SERVER, self._server.pid)
        return target

    def start(self, parts: Sequence[Part]) -> None:
        """Start the parts; they will stop in the same order, and the server last."""
        for part in parts:
            self._parts[part.name] = part
            self._runs[part.name] = Run(part.name)
            self._start(part.name)

    def watch(self) -> None:
        """Notice what has crashed, start again what is due, rotate logs. Call it every half second or so."""
        now = time.monotonic()
        for log in [*(part.log for part in self._parts.values()), self._home / "logs/postgres.log"]:
            rotation.rotate(log)
        self._watch_server(now)
        for run in self._runs.values():
            if run.due is not None:
                if now >= run.due:
                    self._start_again(run)
            elif run.process is not None and (status := run.process.poll()) is not None:
                self._files.forget(run.name)
                wait = run.crashed(now)
                self._say(f"{_ending(run.name, status, self._parts[run.name].log)}; again in {wait:.0f} s")

    def stop(self) -> None:
        """SIGTERM to the parts in order, each given its patience; then the server. Safe to repeat."""
        asked = time.monotonic()
        running = [run for run in self._runs.values() if run.process is not None]
        for run in running:
            assert run.process is not None
            run.process.terminate()
        for run in running:
            self._finish(run, asked + self._parts[run.name].patience)
        if self._server is not None:
            self._server.stop()
        self._files.forget(SERVER)

    def _start(self, name: str) -> None:
        part, run = self._parts[name], self._runs[name]
        part.log.parent.mkdir(parents=True, exist_ok=True)
        marks = {MARKER: str(self._home), PART: name, "RATCHET_PARENT_PID": str(os.getpid())}
        with part.log.open("ab") as output:
            run.process = subprocess.Popen(
                list(part.command),
                cwd=PROJECT,
                env={**part.environment, **marks},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._files.write(name, run.process.pid)

    def _start_again(self, run: Run) -> None:
        """Start a crashed part, once nothing of its former self is left."""
        end(marked(self._home, run.name), LEFTOVER_PATIENCE)
        self._start(run.name)
        run.restarted(time.monotonic())

    def _watch_server(self, now: float) -> None:
        run, server = self._server_run, self._server
        if server is None or server.pid is not None:
            return
        if run.due is None:
            wait = run.crashed(now)
            self._say(
                f"postgres stopped; again in {wait:.0f} s (its log: {self._home / 'logs/postgres.log'})"
            )
        elif now >= run.due:
            server.stop()
            try:
                self.start_server()
            except RatchetError as exc:  # the stack waits for its database, however long that takes
                wait = run.crashed(now)
                self._say(f"postgres does not start: {exc}; again in {wait:.0f} s")
                return
            run.restarted(time.monotonic())
            self._say("postgres runs again")

    def _finish(self, run: Run, deadline: float) -> None:
        """Wait for a part to end until then, and kill what is left of it and of its children."""
        assert run.process is not None
        while run.process.poll() is None and time.monotonic() < deadline:
            time.sleep(STOP_TICK)
        if run.process.poll() is None:
            self._say(f"{run.name} did not stop in {self._parts[run.name].patience:.0f} s: killed")
            end(family([psutil.Process(run.process.pid)]), 0)
            run.process.wait()
        end(marked(self._home, run.name), LEFTOVER_PATIENCE)
        run.process = None
        self._files.forget(run.name)


def _ending(name: str, status: int, log: Path) -> str:
    how = f"was killed by signal {-status}" if status < 0 else f"stopped with exit status {status}"
    last = last_line(log)
    return f"{name} {how}" + (f": {last}" if last else "")


def last_line(log: Path, window: int = 8192) -> str:
    """The last line of a log that says something."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - window))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")
