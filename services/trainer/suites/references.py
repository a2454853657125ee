"""Reference solutions, and any program of a task, as the sandbox runs them. Free of torch."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from services.core.sandbox import Outcome, Program, Style
from services.trainer.suites.formats import Task

SECONDS: Mapping[Style, float] = {
    "check": 3.0,
    "assert": 3.0,
    "unittest": 30.0,  # these import pandas, matplotlib, …
}
OnDone = Callable[[Outcome], None]


class Runner(Protocol):
    """The sandbox: see `services.core.sandbox`."""

    def run(self, programs: Sequence[Program], on_done: OnDone | None = None) -> list[Outcome]: ...


@dataclass(frozen=True)
class Sound:
    """The tasks whose reference passes its own test, and why the others are left out."""

    tasks: tuple[Task, ...]
    excluded: Mapping[str, str]  # task → what became of its reference


def sound(tasks: Sequence[Task], sandbox: Runner, known: Path, on_done: OnDone | None = None) -> Sound:
    """Which tasks can be passed here. References that did once are kept in `known` and not run again."""
    passed = _read(known)
    unknown = [task for task in tasks if task.key not in passed]
    outcomes = sandbox.run([program_of(task, task.reference) for task in unknown], on_done) if unknown else []
    excluded = {
        task.name: outcome.result
        for task, outcome in zip(unknown, outcomes, strict=True)
        if not outcome.passed
    }
    if len(excluded) < len(unknown):
        _write(known, passed | {task.key for task in unknown if task.name not in excluded})
    return Sound(tuple(task for task in tasks if task.name not in excluded), excluded)


def program_of(task: Task, code: str) -> Program:
    """The code as the sandbox is to run it against the task's test."""
    trusted = task.prompt if task.style == "check" else ""  # its functions are the test's to call
    limit = SECONDS[task.style]
    return Program(task.name, code, task.test, task.entry_point, task.style, limit, trusted)


def _read(known: Path) -> set[str]:
    try:
        return set(json.loads(known.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return set()


def _write(known: Path, keys: set[str]) -> None:
    """Moved into place, so that a reader sees all of it; of two writers at once the later one's stays."""
    known.parent.mkdir(parents=True, exist_ok=True)
    unfinished = known.with_name(f".{known.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(sorted(keys)), encoding="utf-8")
    os.replace(unfinished, known)
