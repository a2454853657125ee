"""Whether a task can be passed at all: its reference solution is run in the sandbox, once.

What came of it is kept for each set, passes and failures, by the task's hash. A failure may be this
machine's, which lacks a library: `ratchet tasks check` runs those again.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from services.core.sandbox import Outcome
from services.trainer.suites.references import Runner, program_of
from services.trainer.tasks.placed import PlacedTask

PASSED = "passed"
OpenSandbox = Callable[[], AbstractContextManager[Runner]]
OnDone = Callable[[int, int], None]  # done, of how many; may raise


class Vetted:
    """The results of a set, in a file of their own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.results = _read(path)  # key of a task → passed, or what became of its reference

    def add(self, results: Mapping[str, str]) -> None:
        """Moved into place, so that a reader sees all of it; of two writers at once the later one's stays."""
        self.results |= results
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(self.results, indent=0, sort_keys=True), encoding="utf-8")
        os.replace(unfinished, self._path)


def vet(
    tasks: Sequence[PlacedTask],
    vetted: Vetted,
    sandbox: OpenSandbox,
    on_done: OnDone | None = None,
    *,
    again: bool = False,
) -> list[PlacedTask]:
    """The tasks, those excluded whose reference fails. Run are unknown ones; with `again` also failed ones.

    Raises SandboxError where programs cannot be run. What was found out until then is kept.
    """
    waiting = [each for each in tasks if _is_waiting(each, vetted, again=again)]
    if waiting:
        _run(waiting, vetted, sandbox, on_done)
    return judged(tasks, vetted)


def judged(tasks: Sequence[PlacedTask], vetted: Vetted) -> list[PlacedTask]:
    """By what is known: a task whose reference was not run yet is left as it is."""
    return [_judged(each, vetted.results.get(each.task.key, PASSED)) for each in tasks]


def unknown(tasks: Sequence[PlacedTask], vetted: Vetted) -> int:
    """How many references were not run yet."""
    return sum(_is_waiting(each, vetted, again=False) for each in tasks)


def _is_waiting(each: PlacedTask, vetted: Vetted, *, again: bool) -> bool:
    known = vetted.results.get(each.task.key)
    return each.excluded is None and (known is None or (again and known != PASSED))


def _judged(each: PlacedTask, result: str) -> PlacedTask:
    if each.excluded is not None or result == PASSED:
        return each
    return replace(each, excluded=f"its own reference does not pass ({result})")


def _run(waiting: Sequence[PlacedTask], vetted: Vetted, sandbox: OpenSandbox, on_done: OnDone | None) -> None:
    """Run references; what came of each is kept also when the rest is not run."""
    programs = [replace(program_of(each.task, each.task.reference), key=each.task.key) for each in waiting]
    results: dict[str, str] = {}

    def hear(outcome: Outcome) -> None:
        results[outcome.key] = PASSED if outcome.passed else outcome.result
        if on_done is not None:
            on_done(len(results), len(programs))

    try:
        with sandbox() as opened:
            opened.run(programs, hear)
    finally:
        vetted.add(results)


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}
