"""What a simulation assumes of held-out code or tasks, and of candidates; drawn item by item.

A world draws the held-out set of a track once (`before`), and for every candidate how each item fares under
it (`paired`): with the true effect, and a scatter of items around it.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from services.trainer.gate.evidence import Metric, Paired

FREEDOM = 5  # of Student's t, from which files' differences are drawn: some files differ far more than others
FILE_NATS = 500.0  # of a held-out file, in the middle; only ratios matter
POPULATION = 20_000  # tasks that an effect is adjusted on
FARTHEST = 20.0  # logits that abilities may be shifted by

Numbers = npt.NDArray[np.float64]


class HeldOut(Protocol):
    """What a track is judged by: drawn once, looked at every round."""

    def paired(self, effect: float, chance: np.random.Generator) -> list[Paired]:
        """The held-out items under a model of whom this is the true effect."""


class World(Protocol):
    """What is assumed."""

    metric: ClassVar[Metric]

    @property
    def step(self) -> float: ...

    @property
    def items(self) -> int: ...

    def held_out(self, chance: np.random.Generator) -> HeldOut: ...


@dataclass(frozen=True)
class Files:
    """Held-out code. Shares are relative: 0.03 is 3 %.

    A round of the demo recipe on 150 modules of Python's standard library: 21 held-out files, 4.66 % fewer
    bits per byte, improvements of files around it by 2.3 % (weighted by their loss), logarithms of losses
    by 0.36. The defaults are a little wider.
    """

    metric: ClassVar[Metric] = "nats"
    step: ClassVar[float] = 1.0  # of rates alone
    items: int = 64
    spread: float = 0.025  # standard deviation of files' improvements around the candidate's own
    sizes: float = 0.5  # standard deviation of the logarithm of files' losses

    def held_out(self, chance: np.random.Generator) -> "HeldOutFiles":
        return HeldOutFiles(FILE_NATS * np.exp(chance.normal(0, self.sizes, self.items)), self.spread)


@dataclass(frozen=True)
class HeldOutFiles:
    before: Numbers  # nats
    spread: float

    def paired(self, effect: float, chance: np.random.Generator) -> list[Paired]:
        scatter = self.spread / (FREEDOM / (FREEDOM - 2)) ** 0.5  # so that Student's t has variance 1
        fall = effect + scatter * chance.standard_t(FREEDOM, len(self.before))
        return _paired(self.before, np.maximum(self.before * (1 - fall), 0.0))


@dataclass(frozen=True)
class Tasks:
    """Held-out tasks, each tried so many times by each model: a pass rate is of few, and most are 0 or 1.

    The chances that tasks are solved are Beta distributed: with a concentration below 2 many tasks are never
    solved or always. A candidate moves each task's log-odds by its own effect and by a scatter of their own.
    """

    metric: ClassVar[Metric] = "rate"
    items: int = 48
    samples: int = 4
    pass_rate: float = 0.4  # before, mean over tasks
    concentration: float = 1.0  # α + β of the Beta distribution
    spread: float = 0.5  # standard deviation of tasks' log-odds around the candidate's own shift

    @property
    def step(self) -> float:
        """The least that two pass rates of a task can differ by."""
        return 1 / self.samples

    def held_out(self, chance: np.random.Generator) -> "HeldOutTasks":
        solvable = self.chances(chance, self.items)
        return HeldOutTasks(self, solvable, chance.binomial(self.samples, solvable) / self.samples)

    def chances(self, chance: np.random.Generator, count: int) -> Numbers:
        """That a task is solved when it is tried once, of so many tasks."""
        alpha = self.pass_rate * self.concentration
        return np.clip(chance.beta(alpha, self.concentration - alpha, count), 1e-6, 1 - 1e-6)


@dataclass(frozen=True)
class HeldOutTasks:
    world: Tasks
    solvable: Numbers  # before: the true chances
    before: Numbers  # the pass rates that were measured, once

    def paired(self, effect: float, chance: np.random.Generator) -> list[Paired]:
        moved = shift(self.world, effect) + self.world.spread * chance.normal(size=len(self.solvable))
        after = chance.binomial(self.world.samples, _moved(self.solvable, moved)) / self.world.samples
        return _paired(self.before, after)


@lru_cache(maxsize=64)
def shift(world: Tasks, effect: float) -> float:
    """The shift of log-odds that raises the mean chance, over all tasks there could be, by the effect."""
    chance = np.random.default_rng(7)
    before = world.chances(chance, POPULATION)
    scatter = world.spread * chance.normal(size=POPULATION)
    low, high = -FARTHEST, FARTHEST
    for _ in range(40):
        middle = (low + high) / 2
        risen = float((_moved(before, middle + scatter) - before).mean()) > effect
        low, high = (low, middle) if risen else (middle, high)
    return (low + high) / 2


def _moved(chances: Numbers, by: float | Numbers) -> Numbers:
    """Chances whose log-odds are moved."""
    return 1 / (1 + (1 - chances) / chances * np.exp(-by))


def _paired(before: Numbers, after: Numbers) -> list[Paired]:
    numbers = enumerate(zip(before.tolist(), after.tolist(), strict=True))
    return [Paired(str(number), old, new) for number, (old, new) in numbers]
