"""The receipt of a round of reinforcement: tasks instead of contents, and how often each was practised."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from services.core.models import ContentRole
from services.trainer.receipts.lines import LEARNED, ROLES, Header, Task
from services.trainer.receipts.writing import header, parent_of, write_lines
from services.trainer.suites import formats


class Exposure(Protocol):
    """How often a task was practised."""

    @property
    def episodes(self) -> int: ...

    @property
    def solved(self) -> int: ...

    @property
    def tokens(self) -> int: ...


class Stored(Protocol):
    """A task as the round's snapshot has it."""

    @property
    def task(self) -> formats.Task: ...

    @property
    def task_set(self) -> str: ...


@dataclass(frozen=True)
class Practice:
    """What a finished training came to, for its receipt."""

    steps: int  # iterations behind the weights that are published
    exposures: Mapping[str, Exposure]  # by task key: of those that were practised
    is_counted: bool = True  # episodes are counted as they are made

    @property
    def tokens(self) -> int:
        """Written by all agents in all episodes."""
        return sum(each.tokens for each in self.exposures.values())


def write(
    folder: Path, adapter: str, manifest: Mapping[str, Any], parent: Path | None,
    tasks: Mapping[ContentRole, Sequence[Stored]], practice: Practice,
    beat: Callable[[], None] = lambda: None,
) -> None:  # fmt: skip
    """Write the receipt of a release into the folder that is to be published.

    `manifest` as it is to be written there, `parent` the folder of the champion before, `tasks` those of the
    round by role and in order. Raises ValueError where a task was practised that was not to be.
    """
    taught = {stored.task.key for role in LEARNED for stored in tasks.get(role, ())}
    if stray := sorted(practice.exposures.keys() - taught):
        raise ValueError(f"task {stray[0][:12]}… was practised, and is none that the round trains on")

    def lines() -> Iterator[Header | Task]:
        counts = {role: len(tasks.get(role, ())) for role in ROLES}
        yield header(manifest, adapter, parent_of(parent), practice, counts)
        for role in ROLES:
            for stored in tasks.get(role, ()):
                yield line(role, stored, practice)

    write_lines(folder, lines(), beat)


def line(role: ContentRole, stored: Stored, practice: Practice) -> Task:
    """One task of the round."""
    task = stored.task
    about = Task(role=role, sha256=task.key, task_set=stored.task_set, name=task.name)
    if role not in LEARNED:
        return about
    found = practice.exposures.get(task.key)
    figures = (0, 0, 0) if found is None else (found.episodes, found.solved, found.tokens)
    return about.model_copy(update=dict(zip(("episodes", "solved", "tokens"), figures, strict=True)))
