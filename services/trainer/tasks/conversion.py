"""From records of a benchmark to a file of tasks: which are kept, which not and why, what they are like."""

import ast
import gzip
import json
import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from services.core.errors import ConfigurationError
from services.core.models import Json
from services.trainer.suites import formats
from services.trainer.suites.formats import Task
from services.trainer.tasks import origins, reading, screening
from services.trainer.tasks.placed import PlacedTask, Split
from services.trainer.tasks.reading import Record

FIELDS = (
    "task_id", "complete_prompt", "instruct_prompt", "canonical_solution", "code_prompt", "test",
    "entry_point", "doc_struct", "libs", "seed_id",
)  # fmt: skip
TEST = "test"  # how methods of a TestCase begin that are tests


@dataclass(frozen=True)
class Wanted:
    """Which of the tasks are to be in the file."""

    split: Split | None = None  # None: all, in a file that is split when it is read
    most: int | None = None
    seed: int | None = None  # None: the first ones; else drawn


@dataclass(frozen=True)
class Converted:
    kept: tuple[Mapping[str, Any], ...]  # records, BigCodeBench's fields of each
    tasks: tuple[Task, ...]  # the same
    dropped: Mapping[str, str]  # task → why it is in no split
    elsewhere: int  # sound, but of the other split, or more than were wanted


def convert(
    records: Sequence[Record], wanted: Wanted, benchmarks: Sequence[Task], given: Split | None = None
) -> Converted:
    """given: the split that the records are of; None: each one's is told by its group's hash.

    Raises ConfigurationError where the records are of another format, or nothing is left.
    """
    if records and not formats.TELLS_BIG_CODE_BENCH & records[0][1].keys():
        raise ConfigurationError(
            f"{records[0][0]}: none of {', '.join(sorted(formats.TELLS_BIG_CODE_BENCH))}; expected"
            " BigCodeBench's format. A file in HumanEval's needs no conversion: put it into TASKS_DIR"
        )
    placed = screening.screen(reading.placed(records, given), benchmarks)
    pairs = list(zip((fields for _, fields in records), placed, strict=True))
    sound = [(fields, each) for fields, each in pairs if each.excluded is None]
    chosen = _chosen([pair for pair in sound if wanted.split in (None, pair[1].split)], wanted)
    dropped = {each.task.name: each.excluded for each in placed if each.excluded is not None}
    if not chosen:
        some = "; ".join(f"{name}: {why}" for name, why in list(dropped.items())[:3])
        raise ConfigurationError(
            f"no task is left of {len(records)} ({len(dropped)} dropped{f', as {some}' if some else ''});"
            " expected tasks in BigCodeBench's format"
        )
    return Converted(
        tuple({name: fields[name] for name in FIELDS if name in fields} for fields, _ in chosen),
        tuple(each.task for _, each in chosen),
        dropped,
        len(sound) - len(chosen),
    )


def write(converted: Converted, output: Path, split: Split | None) -> None:
    """JSON lines, gzip where the name ends in .gz; moved into place whole.

    Raises ConfigurationError where the name says another split, or the file cannot be written.
    """
    check_name(output, split)
    data = "".join(f"{json.dumps(dict(fields))}\n" for fields in converted.kept).encode()
    unfinished = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(gzip.compress(data, mtime=0) if output.suffix == ".gz" else data)
        os.replace(unfinished, output)
    except OSError as exc:
        unfinished.unlink(missing_ok=True)
        raise ConfigurationError(f"{output} cannot be written: {exc}") from exc


def check_name(output: Path, split: Split | None) -> None:
    """What a file of a set is called says which split it is: see `origins`."""
    _, says = origins.named(output)
    if says is not None and says != split:
        raise ConfigurationError(
            f"{output} says that its tasks are of the {says} split, and --split is {split or 'not given'}:"
            f" name them alike"
        )


def statistics(converted: Converted) -> Json:
    """How many tasks, of which libraries, how long prompts and tests are (characters), tests of a task."""
    tasks = converted.tasks
    libraries = Counter(name for fields in converted.kept for name in _libraries(fields.get("libs")))
    return {
        "tasks": len(tasks),
        "dropped": dict(converted.dropped),
        "left_for_elsewhere": converted.elsewhere,
        "libraries": dict(libraries.most_common()),
        "prompt_characters": _spread([len(task.instruction or task.prompt) for task in tasks]),
        "test_characters": _spread([len(task.test) for task in tasks]),
        "tests_per_task": _spread([tests(task) for task in tasks]),
    }


def tests(task: Task) -> int:
    """How many tests a task has: methods of its TestCases, else assertions."""
    if task.style != "unittest":
        return screening.asserts(task.test)
    return sum(
        isinstance(node, ast.FunctionDef) and node.name.startswith(TEST)
        for node in ast.walk(screening.parsed(task.test))
    )


def _chosen(
    pairs: list[tuple[Mapping[str, Any], PlacedTask]], wanted: Wanted
) -> list[tuple[Mapping[str, Any], PlacedTask]]:
    """In the order of the records, also those that were drawn."""
    if wanted.most is None or len(pairs) <= wanted.most:
        return pairs
    if wanted.seed is None:
        return pairs[: wanted.most]
    drawn = random.Random(f"conversion {wanted.seed}").sample(range(len(pairs)), wanted.most)
    return [pairs[number] for number in sorted(drawn)]


def _libraries(value: Any) -> list[str]:
    """BigCodeBench writes them as Python does a list, in a text."""
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return [value] if value else []
    return [str(each) for each in value] if isinstance(value, list | tuple) else []


def _spread(values: Sequence[int]) -> Json:
    return {"least": min(values), "median": median(values), "most": max(values)}
