"""A task with its place: which set, which split, which group, and whether a round may have it."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from services.trainer.suites.formats import Task

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class PlacedTask:
    """A task as it was read from a set."""

    task: Task
    split: Split
    group: str  # tasks made of one seed have one group, which a split never divides
    source: str  # file and line, or the generator
    excluded: str | None = None  # why no round may have it

    @cached_property
    def sha256(self) -> bytes:
        return bytes.fromhex(self.task.key)

    @cached_property
    def prompt_sha256(self) -> bytes:
        return prompt_digest(self.task)


def prompt_digest(task: Task) -> bytes:
    """SHA-256 of what a task asks: its words and signs, whatever the spaces and the function's name."""
    return hashlib.sha256("\n".join(words(task)).encode()).digest()


def words(task: Task) -> Sequence[str]:
    """The words and signs of the prompt, small, with the entry point under one name for all tasks."""
    named = re.sub(rf"\b{re.escape(task.entry_point)}\b", "entry_point", task.prompt)
    return WORD.findall(named.lower())


def as_payload(task: Task) -> dict[str, Any]:
    return asdict(task)


def from_payload(payload: Mapping[str, Any]) -> Task:
    return Task(**payload)
