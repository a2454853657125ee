"""Easy tasks, generated: for models that are too small for others, and to try reinforcement out.

Short functions of numbers, texts, lists and dictionaries, asked for as HumanEval does. Their tests are
assertions that are counted, so that a reward can tell nearly from not at all. Kinds, not tasks, are split
into train and test: what is asked in the test split, no task of the train split asks.
"""

import functools

from services.trainer.suites import formats
from services.trainer.tasks.easy import lists, mappings, numbers, texts
from services.trainer.tasks.easy.kind import Kind
from services.trainer.tasks.easy.kind import tasks as tasks_of
from services.trainer.tasks.placed import PlacedTask
from services.trainer.tasks.splits import split_of

NAME = "easy"
KINDS: tuple[Kind, ...] = (*numbers.KINDS, *texts.KINDS, *lists.KINDS, *mappings.KINDS)


@functools.cache
def _tasks() -> tuple[PlacedTask, ...]:
    return tuple(
        PlacedTask(task, split_of(kind.name), kind.name, "generated") for kind, task in tasks_of(KINDS)
    )


def tasks() -> list[PlacedTask]:
    """All tasks of the set, the same on every machine."""
    return list(_tasks())


@functools.cache
def version() -> str:
    """SHA-256 over the tasks."""
    return formats.version([each.task for each in _tasks()])
