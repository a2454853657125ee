"""What programs are worth: run in the sandbox while others are still written, equal ones once."""

import hashlib
import json
import queue
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal, Protocol, Self

from services.core.sandbox import Outcome, Program, Sandbox
from services.trainer.suites.formats import Task
from services.trainer.suites.references import program_of

RewardType = Literal["binary", "continuous"]
NO_CODE = "failed: there is no code in the answer"
MOST_LINES = 32  # connections to a sandbox; it queues what has no worker
MOST_KEPT = 200_000  # outcomes


class Runner(Protocol):
    """Runs programs: `services.core.sandbox.Sandbox`, or whatever stands in for it."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]: ...


class Rewards:
    """Programs go in as they are written, their outcomes come as futures.

    A thread and a connection for each program that runs; `submit` is for one thread. Outcomes are kept by
    code and test for as long as this lives; errors are not.
    """

    def __init__(self, runner: Runner, reward_type: RewardType = "binary") -> None:
        """runner: a Sandbox, which more connections are made to; anything else is used by one thread."""
        self.reward_type = reward_type
        self.programs, self.repeated = 0, 0  # submitted in all, and of those answered by an earlier one
        self._lines = _lines(runner)
        self._free: queue.SimpleQueue[Runner] = queue.SimpleQueue()
        for each in [runner, *self._lines]:
            self._free.put(each)
        self._threads = ThreadPoolExecutor(1 + len(self._lines), thread_name_prefix="rewards")
        self._known: dict[str, Future[Outcome]] = {}

    def submit(self, task: Task, code: str | None) -> "Future[Outcome]":
        """What becomes of the code; None: no code was found in the answer.

        The future raises SandboxError when the sandbox cannot run it or has gone away, with what to do.
        """
        self.programs += 1
        if code is None:
            done: Future[Outcome] = Future()
            done.set_result(Outcome(task.name, passed=False, result=NO_CODE))
            return done
        program = program_of(task, code)
        key = _key(program)
        known = self._known.get(key)
        if known is not None and not _has_failed(known):
            self.repeated += 1
            return known
        while len(self._known) >= MOST_KEPT:
            del self._known[next(iter(self._known))]
        self._known[key] = self._threads.submit(self._run, program)
        return self._known[key]

    def reward(self, outcome: Outcome) -> float:
        """See `reward`, by this one's type."""
        return reward(outcome, self.reward_type)

    def close(self) -> None:
        """End what waits, hang up the connections made here; the runner given stays open."""
        self._threads.shutdown(cancel_futures=True)
        for line in self._lines:
            line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, program: Program) -> Outcome:
        runner = self._free.get()
        try:
            (outcome,) = runner.run([program])
        finally:
            self._free.put(runner)
        return outcome


def reward(outcome: Outcome, reward_type: RewardType) -> float:
    """From 0 to 1. binary: whether every test passed; continuous: the share of them that did.

    A program whose tests cannot be told apart, or that ended before they were counted, is worth all or
    nothing either way.
    """
    if outcome.passed:
        return 1.0
    if reward_type == "binary" or not outcome.tests:
        return 0.0
    return (outcome.tests_passed or 0) / outcome.tests


def said(outcome: Outcome) -> str:
    """What a team is told of its program: the sandbox's words and how many tests passed, never a test itself.

    A team that read the tests could write programs for them alone.
    """
    words = outcome.result.strip()
    words = f"{words} an assertion does not hold" if words.endswith(":") else words
    return (
        f"{words} ({outcome.tests_passed or 0} of {outcome.tests} tests passed)" if outcome.tests else words
    )


def _lines(runner: Runner) -> list[Sandbox]:
    if not isinstance(runner, Sandbox):
        return []
    return [runner.beside() for _ in range(min(runner.workers, MOST_LINES) - 1)]


def _has_failed(future: "Future[Outcome]") -> bool:
    return future.done() and (future.cancelled() or future.exception() is not None)


def _key(program: Program) -> str:
    about = [program.code, program.test, program.style, program.entry_point, program.context, program.timeout]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()
