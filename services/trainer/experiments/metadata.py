"""Metadata of problems, and how it stands in a prompt: as comments before the function that is asked for."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError
from services.trainer.experiments.derived import derive
from services.trainer.experiments.experiment import DERIVED, Form
from services.trainer.recipes.combinations import nearest
from services.trainer.suites.formats import Task

Metadata = Mapping[str, Mapping[str, str]]  # problem → annotation → what it says
HEADER = "# .comments metadata"
ENDINGS = re.compile(r"(?<=[a-z])(?:Name|Type|Complexity)$")  # functionName is @function
CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
MOST_CHARACTERS = 200  # of one annotation


def load(metadata: str, folder: Path, problems: Sequence[Task]) -> Metadata:
    """The annotations of every problem: derived, or from a JSON file below `folder`.

    Raises ConfigurationError for a file that cannot be read, or has nothing on one of the problems.
    """
    if metadata == DERIVED:
        return {task.name: derive(task) for task in problems}
    path = folder / metadata
    found = _named(path, problems)
    missing = [task.name for task in problems if not found.get(task.name)]
    if missing:
        hint = nearest(missing[0], list(found))
        raise ConfigurationError(f"{path}: nothing on {len(missing)} problems, as {missing[0]}{hint}")
    return found


def written(task: Task, form: Form, metadata: Metadata, shown: Sequence[str] | None = None) -> str:
    """The prompt of a problem in a form; annotated, its comments stand right before the function."""
    if form == "plain":
        return task.prompt
    said = metadata[task.name]
    names = said if shown is None else [name for name in shown if name in said]
    comments = [HEADER, *(f"# @{name} {said[name]}" for name in names)]
    definition = re.compile(rf"^(?:async )?def {re.escape(task.entry_point)}\b", re.MULTILINE)
    found = definition.search(task.prompt)
    at = found.start() if found else 0
    return task.prompt[:at] + "\n".join(comments) + "\n\n" + task.prompt[at:]


def annotation(field: str) -> str:
    """The annotation of a field: `function` of functionName, `data-structures` of dataStructures."""
    return CAPITAL.sub("-", ENDINGS.sub("", field)).lower()


def check_names(shown: Sequence[str] | None, metadata: Metadata) -> None:
    """Raises ConfigurationError for an annotation that no problem has."""
    known = sorted({name for said in metadata.values() for name in said})
    for name in shown or ():
        if name not in known:
            raise ConfigurationError(
                f"annotations: no problem has @{name}{nearest(name, known)} (there are: {', '.join(known)})"
            )


def _named(path: Path, problems: Sequence[Task]) -> Metadata:
    """By problem: an object of them, or rows with `metadata` and the `task_id` or `prompt` it belongs to."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"metadata {path} cannot be read: {exc}") from exc
    try:
        lines = text.splitlines() if path.suffix == ".jsonl" else ()
        value: Any = [json.loads(line) for line in lines if line.strip()] or json.loads(text)
    except ValueError as exc:
        raise ConfigurationError(f"metadata {path} is not JSON: {exc}") from exc
    if isinstance(value, list):
        by_prompt = {task.prompt.strip(): task.name for task in problems}
        value = {_owner(row, by_prompt, path): row["metadata"] for row in value}
    if not isinstance(value, dict):
        raise ConfigurationError(f"metadata {path}: expected an object, task_id → fields")
    return {str(name): _annotations(fields, f"{path}, {name}") for name, fields in value.items()}


def _owner(row: Any, by_prompt: Mapping[str, str], path: Path) -> str:
    if not isinstance(row, dict) or "metadata" not in row:
        raise ConfigurationError(f"metadata {path}: a row without the field metadata: {row!r:.60}")
    name = row.get("task_id") or by_prompt.get(str(row.get("prompt", "")).strip())
    return str(name or "of a problem that is not asked")


def _annotations(fields: Any, where: str) -> dict[str, str]:
    if not isinstance(fields, dict):
        raise ConfigurationError(f"metadata {where}: {fields!r:.60}; expected fields with values")
    said = {annotation(str(name)): _one_line(value) for name, value in fields.items()}
    return {name: text for name, text in said.items() if text}


def _one_line(value: Any) -> str:
    """As it can stand in a comment: never more than its line."""
    if isinstance(value, (list, tuple)):
        return ", ".join(filter(None, map(_one_line, value)))
    if value is None or isinstance(value, dict):
        return "" if not value else json.dumps(value)[:MOST_CHARACTERS]
    return " ".join(str(value).split())[:MOST_CHARACTERS]
