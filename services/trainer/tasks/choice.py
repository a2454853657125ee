"""Which tasks a round trains on, stops early by, and is judged by. Pure."""

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.core.models import ContentRole
from services.trainer.tasks import splits
from services.trainer.tasks.placed import Split

Chosen = tuple[tuple[int, bytes], ...]  # id and SHA-256 of each task, in order
ROLES = (ContentRole.TRAIN, ContentRole.VALIDATION, ContentRole.HELD_OUT)
MOST_TRAIN = 20_000  # tasks
MOST_VALIDATION = 64  # tasks that early stopping looks at; more cost time and tell little more
MOST_HELD_OUT = 500  # tasks that the gate looks at


@dataclass(frozen=True)
class Usable:
    """A task of a set that is not excluded, as a track sees it."""

    task_id: int
    sha256: bytes
    group: str
    split: Split
    # Its kin are itself and the tasks of any set that ask the same or were made of the same seed.
    is_test: bool = False  # some of its kin are outside the train split of their set
    has_judged: bool = False  # a round of the track was judged by some of its kin
    has_taught: bool = False  # a round of the track trained on some of its kin
    is_trained: bool = False  # a round of the track, however it ended, trained on this very task

    @property
    def may_teach(self) -> bool:
        """Whether it may ever be trained on."""
        return self.split == "train" and not (self.is_test or self.has_judged or self.is_set_aside)

    @property
    def is_set_aside(self) -> bool:
        """Whether its group is kept for validation: a matter of the group's name alone, so for good."""
        return splits.is_set_aside(self.group)


@dataclass(frozen=True)
class TaskChoice:
    train: Chosen
    validation: Chosen
    held_out: Chosen

    @property
    def roles(self) -> tuple[tuple[ContentRole, Chosen], ...]:
        return tuple(zip(ROLES, (self.train, self.validation, self.held_out), strict=True))

    @property
    def hash(self) -> str:
        """SHA-256 over role and task hash in order: the same choice has the same hash anywhere."""
        digest = hashlib.sha256()
        for role, tasks in self.roles:
            for _, sha256 in tasks:
                digest.update(role.encode() + sha256)
        return digest.hexdigest()


def choose(
    tasks: Iterable[Usable], judging: Iterable[Usable], seed: int, most: int = MOST_TRAIN
) -> TaskChoice:
    """Train and validation from `tasks`, the held-out ones from `judging`'s test split.

    No task has two roles, and none is trained on that ever judged, or the other way round.
    """
    tasks = _by_hash(tasks)
    held_out = [each for each in _by_hash(judging) if each.split == "test" and not each.has_taught]
    held_out = held_out[:MOST_HELD_OUT]
    validation = _validation(tasks)
    judges = {each.task_id for each in (*held_out, *validation)}
    teaching = [each for each in tasks if each.may_teach and each.task_id not in judges]
    return TaskChoice(
        _chosen(_drawn(teaching, seed)[:most]), _chosen(validation[:MOST_VALIDATION]), _chosen(held_out)
    )


def _validation(tasks: Sequence[Usable]) -> list[Usable]:
    """The set's own split; else the groups set aside, or one group where chance set none aside."""
    own = [each for each in tasks if each.split == "validation" and not each.has_taught]
    if own:
        return own
    ours = [each for each in tasks if each.split == "train" and not (each.is_test or each.has_taught)]
    aside = [each for each in ours if each.is_set_aside or each.has_judged]
    groups = sorted({each.group for each in ours}, key=lambda group: splits.fraction("validation", group))
    if aside or len(groups) < 2:
        return aside
    return [each for each in ours if each.group == groups[0]]


def _drawn(tasks: Sequence[Usable], seed: int) -> list[Usable]:
    """New ones first, each part in the seed's order."""
    order = random.Random(f"tasks {seed}")
    parts = [[each for each in tasks if each.is_trained is known] for known in (False, True)]
    for part in parts:
        order.shuffle(part)
    return [each for part in parts for each in part]


def _by_hash(tasks: Iterable[Usable]) -> list[Usable]:
    return sorted(tasks, key=lambda each: each.sha256)


def _chosen(tasks: Iterable[Usable]) -> Chosen:
    return tuple((each.task_id, each.sha256) for each in tasks)
