"""Tasks in the database: what a set holds now, what a round gets of it, how often it trained on each."""

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from services.core.db import Transaction
from services.core.errors import ConfigurationError
from services.core.models import ContentRole
from services.trainer.suites.formats import Task
from services.trainer.tasks import choice
from services.trainer.tasks.choice import TaskChoice, Usable
from services.trainer.tasks.placed import PlacedTask, Split, as_payload, from_payload

NEW_COLUMNS = (
    "task_set", "name", "sha256", "prompt_sha256", "task_group", "split", "style", "payload", "source",
    "excluded",
)  # fmt: skip


class Asked(Protocol):
    """What a recipe says of tasks: its section `reinforcement`."""

    @property
    def tasks(self) -> str: ...

    @property
    def eval_tasks(self) -> str | None: ...


@dataclass(frozen=True)
class StoredTask:
    task_id: int
    task: Task
    task_set: str = ""


@dataclass(frozen=True)
class StandingTask:
    """A task of a set as it is now, for a list."""

    task_id: int
    placed: PlacedTask
    added_at: datetime


@dataclass(frozen=True)
class TaskExposure:
    """How often the weights that were published had been trained on a task."""

    task_id: int
    episodes: int
    solved: int  # of them
    tokens: int  # written by all agents in them


@dataclass(frozen=True)
class Written:
    """What became of a set when it was read again."""

    added: int
    retired: int
    moved: int  # another split, group or reason than before
    same: int

    def __str__(self) -> str:
        told = {"new": self.added, "gone": self.retired, "changed": self.moved, "as before": self.same}
        return ", ".join(f"{count:,} {what}" for what, count in told.items() if count) or "no tasks"


@dataclass(frozen=True)
class TaskSet:
    name: str
    signature: str | None  # of what it was read from; None: to be read again
    source: str | None
    read_at: datetime | None


# rounds


def count_new(tx: Transaction, track: str, task_set: str, most: int) -> int:
    """How many tasks that the track may train on no round of it has had, at most `most`; none: 0."""
    usable = _usable(tx, track, task_set)
    return min(most, sum(each.may_teach and not each.is_trained for each in usable))


def choose(tx: Transaction, track: str, asked: Asked, seed: int, most: int = choice.MOST_TRAIN) -> TaskChoice:
    """What the next round of a track trains on and is judged by. Changes nothing.

    `most` tasks are trained on at most: new ones first, then as the seed draws them. Raises
    ConfigurationError where there is no such set, or it has nothing to train on or to be judged by.
    """
    judging = asked.eval_tasks or asked.tasks
    for name in (asked.tasks, judging):
        _check_known(tx, name)
    train = _usable(tx, track, asked.tasks)
    held_out = train if judging == asked.tasks else _usable(tx, track, judging)
    found = choice.choose(train, held_out, seed, most)
    if not found.train:
        raise ConfigurationError(_nothing(tx, asked.tasks, "to train on"))
    if not found.held_out:
        raise ConfigurationError(_nothing(tx, judging, "in its test split to be judged by"))
    return found


def store_snapshot(tx: Transaction, round_id: int, chosen: TaskChoice) -> None:
    """The tasks of a new round, by role and in order."""
    rows = [
        (round_id, task_id, str(role), position)
        for role, tasks in chosen.roles
        for position, (task_id, _) in enumerate(tasks)
    ]
    tx.copy("round_tasks", ("round_id", "task_id", "role", "position"), rows)


def read(tx: Transaction, round_id: int) -> dict[ContentRole, list[StoredTask]]:
    """The round's tasks in order, by role; every role has a list."""
    tasks: dict[ContentRole, list[StoredTask]] = {role: [] for role in choice.ROLES}
    for row in tx.all("round_tasks", round_id=round_id):
        tasks[ContentRole(row.role)].append(StoredTask(row.task_id, from_payload(row.payload), row.task_set))
    return tasks


def record_exposures(tx: Transaction, round_id: int, exposures: Iterable[TaskExposure]) -> None:
    """In place of what an earlier attempt of the round has written."""
    tx.execute("forget_task_exposures", round_id=round_id)
    rows = [(round_id, each.task_id, each.episodes, each.solved, each.tokens) for each in exposures]
    tx.copy("task_exposures", ("round_id", "task_id", "episodes", "solved", "tokens"), rows)


# sets


def sets(tx: Transaction) -> list[TaskSet]:
    return [TaskSet(*row) for row in tx.all("task_sets")]


def standing(tx: Transaction, task_set: str) -> list[StandingTask]:
    """The tasks of a set as it is now: train, validation, test, as they were read."""
    return [
        StandingTask(
            row.id,
            PlacedTask(from_payload(row.payload), row.split, row.task_group, row.source, row.excluded),
            row.added_at,
        )
        for row in tx.all("standing_tasks", task_set=task_set)
    ]


def signature(tx: Transaction, task_set: str) -> str | None:
    """Of what the set was last read from."""
    row = tx.one("task_set", task_set=task_set)
    return None if row is None else row.signature


def write(
    tx: Transaction, task_set: str, tasks: Sequence[PlacedTask], *, signature: str | None, source: str | None
) -> Written:
    """Make the set hold these tasks and no others. Rows that rounds refer to stay, retired.

    Raises ValueError where two of the tasks have one name.
    """
    _check_names(task_set, tasks)
    tx.execute("lock_task_set", task_set=task_set)
    known = {bytes(row.sha256): row for row in tx.all("known_tasks", task_set=task_set)}
    wanted = {each.sha256: each for each in tasks}
    gone = [row.id for key, row in known.items() if row.retired_at is None and key not in wanted]
    if gone:
        tx.execute("retire_tasks", task_ids=gone)
    both = [(known[key], each) for key, each in wanted.items() if key in known]
    moved = [(row.id, each) for row, each in both if _moved(row, each)]
    if moved:
        _place(tx, moved)
    new = [each for key, each in wanted.items() if key not in known]
    tx.copy("tasks", NEW_COLUMNS, (_row(task_set, each) for each in new))
    tx.execute("task_set_was_read", task_set=task_set, signature=signature, source=source)
    return Written(len(new), len(gone), len(moved), len(wanted) - len(new) - len(moved))


def _usable(tx: Transaction, track: str, task_set: str) -> list[Usable]:
    return [
        Usable(
            row.id, bytes(row.sha256), row.task_group, row.split,
            is_test=row.is_test, has_judged=row.has_judged, is_trained=row.is_trained,
            has_taught=row.has_taught,
        )
        for row in tx.all("usable_tasks", track=track, task_set=task_set)
    ]  # fmt: skip


def _check_known(tx: Transaction, name: str) -> None:
    known = [each.name for each in sets(tx)]
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    nearest = f", the nearest is {near[0]}" if near else ""
    raise ConfigurationError(
        f"there is no task set {name!r}{nearest}: expected {', '.join(known) or 'one that has been read'}."
        f" Put {name}.jsonl into TASKS_DIR, or {name}.train.jsonl and {name}.test.jsonl"
    )


def _nothing(tx: Transaction, name: str, what: str) -> str:
    """Of a set without tasks for a purpose: how many it has, and why those are left out."""
    standing_ = tx.all("standing_tasks", task_set=name)
    reasons = Counter(row.excluded for row in standing_ if row.excluded)
    why = "; ".join(f"{count} × {reason}" for reason, count in reasons.most_common(3))
    splits: Counter[Split] = Counter(row.split for row in standing_ if not row.excluded)
    has = ", ".join(f"{count} {split}" for split, count in splits.items()) or "none"
    return (
        f"task set {name!r} has nothing {what}: of its {len(standing_)} tasks usable are {has}"
        + (f"; left out: {why}" if why else "")
        + f". `ratchet tasks {name}` lists them"
    )


def _check_names(task_set: str, tasks: Sequence[PlacedTask]) -> None:
    name, count = next(iter(Counter(each.task.name for each in tasks).most_common(1)), ("", 0))
    if count > 1:
        raise ValueError(f"task set {task_set}: {count} tasks are called {name!r}; expected one")


def _moved(row: Any, task: PlacedTask) -> bool:
    was = (row.split, row.task_group, row.source, row.excluded)
    return row.retired_at is not None or was != (task.split, task.group, task.source, task.excluded)


def _place(tx: Transaction, moved: Sequence[tuple[int, PlacedTask]]) -> None:
    tx.execute(
        "place_tasks",
        task_ids=[task_id for task_id, _ in moved],
        splits=[each.split for _, each in moved],
        task_groups=[each.group for _, each in moved],
        sources=[each.source for _, each in moved],
        excluded=[each.excluded for _, each in moved],
    )


def _row(task_set: str, each: PlacedTask) -> tuple[Any, ...]:
    task = each.task
    return (
        task_set, task.name, each.sha256, each.prompt_sha256, each.group, each.split, task.style,
        as_payload(task), each.source, each.excluded,
    )  # fmt: skip
