"""The sets of tasks that there are: files of TASKS_DIR, and built-in ones.

NAME.train.jsonl, NAME.validation.jsonl and NAME.test.jsonl are the splits of the set NAME; NAME.jsonl is
split by hash. Each may end in .gz. A file wins over a built-in set of its name.
"""

import difflib
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.core.errors import ConfigurationError
from services.trainer.suites import formats
from services.trainer.tasks import dataframebench, easy, reading
from services.trainer.tasks.placed import SPLITS, PlacedTask, Split

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
RESERVED = ("check",)  # a word of `ratchet tasks`
JUDGING_FIRST: tuple[Split | None, ...] = ("test", "validation", "train", None)  # of two alike the later goes


@dataclass(frozen=True)
class Origin:
    """Where a set comes from."""

    name: str
    says: str  # for a person
    state: str  # another: what it holds may be another
    read: Callable[[], list[PlacedTask]]


def origins(tasks_dir: Path) -> dict[str, Origin]:
    """The sets that there are, by name. Raises ConfigurationError for files that contradict one another."""
    built_in = [_easy()]
    if (found := dataframebench.installed()) is not None:
        built_in.append(_dataframebench(found))
    found_files: dict[str, dict[Split | None, Path]] = defaultdict(dict)
    for path in sorted(tasks_dir.iterdir()) if tasks_dir.is_dir() else ():
        if path.name.endswith(formats.SUFFIXES):
            name, split = named(path)
            _take(found_files[name], split, path)
    from_files = (_files(name, files) for name, files in found_files.items())
    return {each.name: each for each in (*built_in, *from_files)}


def named(path: Path) -> tuple[str, Split | None]:
    """Set and split that a file's name says. Raises ConfigurationError for a name that cannot be."""
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
    before, _, last = stem.rpartition(".")
    split = next((each for each in SPLITS if each == last and before), None)
    name = before if split else stem
    if not NAME.fullmatch(name) or name in RESERVED:
        raise ConfigurationError(
            f"{path}: {name!r} cannot be the name of a task set; expected letters, digits, dots, dashes and"
            f" underscores, and not {', '.join(RESERVED)}: rename the file"
        )
    return name, split


def check(tasks_dir: Path, names: Iterable[str]) -> dict[str, Origin]:
    """The sets that there are. Raises ConfigurationError for a name of none of them."""
    there = origins(tasks_dir)
    for name in names:
        if name not in there:
            near = difflib.get_close_matches(name, there, n=1, cutoff=0.0)
            raise ConfigurationError(
                f"there is no task set {name!r}, the nearest is {near[0]}: expected {', '.join(there)}; files"
                f" are looked for in {tasks_dir.absolute()} (TASKS_DIR), as {name}.jsonl, or"
                f" {name}.train.jsonl and {name}.test.jsonl"
            )
    return there


def state_of(paths: Iterable[Path]) -> str:
    """Names, sizes and times of the files that are there."""
    found = [(path.name, status.st_size, status.st_mtime_ns) for path in paths if (status := _stat(path))]
    return json.dumps(found)


def _stat(path: Path) -> "os.stat_result | None":
    try:
        return path.stat()
    except OSError:
        return None


def _take(files: dict[Split | None, Path], split: Split | None, path: Path) -> None:
    """Raises ConfigurationError where the set would be split in two ways."""
    other = files.get(split) or files.get(None) or (None if split else next(iter(files.values()), None))
    if other is not None:
        raise ConfigurationError(
            f"{other} and {path} are one task set: expected NAME.jsonl alone, or one file for each split"
            f" ({', '.join(SPLITS)}): rename or remove one"
        )
    files[split] = path


def _files(name: str, files: Mapping[Split | None, Path]) -> Origin:
    in_order: Sequence[tuple[Path, Split | None]] = [
        (files[split], split) for split in JUDGING_FIRST if split in files
    ]
    says = ", ".join(path.name for path, _ in in_order)
    return Origin(name, says, state_of(path for path, _ in in_order), lambda: reading.read(in_order))


def _easy() -> Origin:
    return Origin(easy.NAME, "built in: generated", easy.version(), easy.tasks)


def _dataframebench(folder: Path) -> Origin:
    name = dataframebench.NAME
    state = state_of(folder.glob("*.jsonl"))
    return Origin(name, f"the package {name}", state, lambda: dataframebench.read(folder))
