"""One program at a time: a cage for it, a checker beside it, and an outcome."""

import array
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from services.core.errors import SandboxError
from services.core.sandbox import Outcome, Program
from services.sandbox.cage import ANSWERS, BESIDE, CHECKS, Caged, Cages
from services.sandbox.inside import frames
from services.sandbox.inside.channel import STARTING
from services.sandbox.inside.checker import GRACE
from services.sandbox.inside.frames import FrameError, OutOfTimeError
from services.sandbox.inside.limits import by_the_clock

TRIES = 2  # cages that may fail to come up before that is an error
SLACK = 5.0  # seconds past a checker's own limits after which it is killed


class Job:
    """A program and what to do with its outcome. `cancel` ends it wherever it is, and nothing is told."""

    def __init__(self, program: Program, done: Callable[[Outcome | SandboxError], None]) -> None:
        self.program = program
        self.done = done
        self.cancelled = False
        self._caged: Caged | None = None
        self._lock = threading.Lock()

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            if self._caged is not None:
                self._caged.kill()

    def holds(self, caged: Caged | None) -> None:
        """Say which cage it is in, None for none any more."""
        with self._lock:
            self._caged = caged
            if self.cancelled and caged is not None:
                caged.kill()


class Slot:
    """Runs jobs in turn. Its checker lives as long as it does, or until it has to be killed."""

    def __init__(self, number: int, cages: Cages) -> None:
        self._number = number
        self._cages = cages
        self._checker: Caged | None = None
        self._control: socket.socket | None = None

    def run(self, job: Job) -> None:
        """Tell the job its outcome, or what is wrong with the sandbox."""
        began = time.monotonic()
        try:
            answer = self._answered(job)
        except (OSError, SandboxError) as exc:
            self.close()
            if not job.cancelled:
                job.done(SandboxError(f"a program could not be run: {exc}"))
            return
        if job.cancelled:
            return
        result = str(answer["result"])
        counted = {name: answer.get(name) for name in ("tests_passed", "tests")}
        seconds = time.monotonic() - began
        job.done(Outcome(job.program.key, result == "passed", result, **counted, seconds=seconds))

    def _answered(self, job: Job) -> dict[str, Any]:
        """What the checker says. Raises SandboxError when no cage comes up, though another is tried."""
        answer: dict[str, Any] = {}
        for _ in range(TRIES):
            answer = self._asked(job)
            if job.cancelled or not answer.get("broken"):
                return answer
        raise SandboxError(str(answer["result"]))

    def _asked(self, job: Job) -> dict[str, Any]:
        program = job.program
        role = BESIDE if program.style == "unittest" else ANSWERS
        mine, its = socket.socketpair()
        with mine, its:
            caged = self._cages.start(role, self._number, its.fileno(), [program.style, program.timeout])
            its.close()
            try:
                job.holds(caged)
                return self._checked(program, mine)
            finally:
                job.holds(None)
                caged.kill()

    def _checked(self, program: Program, line: socket.socket) -> dict[str, Any]:
        request = {
            name: getattr(program, name)
            for name in ("code", "test", "entry_point", "style", "timeout", "context")
        }
        control = self._control_line()
        try:
            handed = array.array("i", [line.fileno()])
            control.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])
            frames.send(control.fileno(), request)
            line.close()
            limit = STARTING + by_the_clock(program.timeout) + GRACE + SLACK
            answer = frames.receive(control.fileno(), time.monotonic() + limit)
        except OutOfTimeError:
            self.close()
            return {"result": "timed out"}
        except FrameError as exc:
            self.close()
            return {"result": f"failed: {exc}"}
        if answer is None:
            self.close()
            raise SandboxError("the checker ended")
        return answer

    def _control_line(self) -> socket.socket:
        """The socket to the checker, which is started when there is none. Raises SandboxError."""
        if self._control is None:
            self._control, its = socket.socketpair()
            with its:
                self._checker = self._cages.start(CHECKS, self._number, its.fileno())
            if not frames.receive(self._control.fileno(), time.monotonic() + STARTING):
                raise SandboxError("the checker does not start")
        return self._control

    def close(self) -> None:
        """End the checker."""
        if self._checker is not None:
            self._checker.kill()
        if self._control is not None:
            self._control.close()
        self._control = self._checker = None


def default_workers() -> int:
    """One a core that this process may use."""
    return len(os.sched_getaffinity(0))
