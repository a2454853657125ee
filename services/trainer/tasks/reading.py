"""Files of tasks as they are: the tasks of one split or of several, and what is wrong with some.

A line that is no task is one all the same, excluded with what is wrong with it: it is listed, and the
others are used.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError
from services.trainer.suites import formats
from services.trainer.suites.formats import Make, Task
from services.trainer.tasks.placed import PlacedTask, Split
from services.trainer.tasks.splits import split_of

GROUP_FIELDS = ("seed_id", "group")  # what says that two tasks were made of one
UNSTORABLE = "it holds a NUL or half a character"
Record = tuple[str, Mapping[str, Any]]  # where it is, its fields


def read(files: Sequence[tuple[Path, Split | None]]) -> list[PlacedTask]:
    """The tasks of a set's files in order. split: of all of a file; None: by the hash of each one's group.

    Raises ConfigurationError where a file cannot be read, is not one JSON object a line, or holds none.
    """
    seen: dict[str, str] = {}
    return [each for path, split in files for each in _placed(_records(path), split, seen)]


def placed(records: Iterable[Record], split: Split | None) -> list[PlacedTask]:
    """The tasks of records in HumanEval's or BigCodeBench's format, whichever the first is in."""
    return list(_placed(records, split, {}))


def _records(path: Path) -> list[Record]:
    found = [(f"{path.name}, line {number}", fields) for number, fields in formats.records(path)]
    if not found:
        raise ConfigurationError(f"{path} holds no task: expected one JSON object a line")
    return found


def _placed(records: Iterable[Record], split: Split | None, seen: dict[str, str]) -> Iterator[PlacedTask]:
    """`seen` says where each task is, also those of other files of the set."""
    make: Make | None = None
    for where, fields in records:
        make = make or formats.maker(fields)
        task, wrong = _task(make, fields, where)
        if task.name in seen:
            wrong = f"task_id {task.name} is at {seen[task.name]} already"
            task = _remains(fields, f"{task.name} ({where})")
        seen[task.name] = where
        group = group_of(fields, task.name)
        yield PlacedTask(task, split or split_of(group), group, where, wrong)


def group_of(fields: Mapping[str, Any], name: str) -> str:
    """What the record says that it was made of; itself where it says nothing."""
    named = (fields.get(field) for field in GROUP_FIELDS)
    return _storable(next((value for value in named if isinstance(value, str) and value), name))


def _task(make: Make, fields: Mapping[str, Any], where: str) -> tuple[Task, str | None]:
    name = fields.get("task_id")
    name = _storable(name) if isinstance(name, str) and name.strip() else where
    try:
        task = make(fields, where)
    except ConfigurationError as exc:
        return _remains(fields, name), str(exc).removeprefix(f"{where}: ").removeprefix(f"{where}, ")
    if any(_storable(value) != value for value in fields.values() if isinstance(value, str)):
        return _remains(fields, name), UNSTORABLE
    return task, None


def _remains(fields: Mapping[str, Any], name: str) -> Task:
    """What can be shown of a record that is no task."""

    def text(*names: str) -> str:
        return _storable(next((value for each in names if isinstance(value := fields.get(each), str)), ""))

    prompt = text("prompt", "complete_prompt", "text")  # the last is MBPP's
    return Task(
        name, prompt, None, prompt, text("canonical_solution"), text("test"), text("entry_point"), "check"
    )


def _storable(text: str) -> str:
    """As PostgreSQL takes it: no NUL, no half of a surrogate pair."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
