"""The learning-rate range test: which rates to try, and what the losses say. Pure, without torch.

Smith, "Cyclical Learning Rates for Training Neural Networks", 2017, section 3.3: let the rate rise over a
short training and look where the loss falls fastest and where it begins to rise. The rate rises
exponentially, as Gugger and Howard made usual, so that every decade gets as many steps.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from services.core.models import Json

SMOOTHING = 0.8  # share of the past in the moving mean: batches differ more than neighbouring rates
DIVERGED = 1.5  # times the lowest smoothed loss; adapters begin near their best, so 4 would be far too late
LEAST = 5  # steps before anything can be said


@dataclass(frozen=True)
class Point:
    """One step of the test."""

    learning_rate: float
    loss: float  # nats a token
    smoothed: float

    def as_json(self) -> Json:
        return asdict(self)


@dataclass(frozen=True)
class Found:
    """What the curve says. None: it never fell, or never rose, within the rates tried."""

    suggestion: float | None  # where the smoothed loss falls fastest
    lowest: float | None  # where it is lowest
    diverges: float | None  # where it has risen again to DIVERGED times that

    def as_json(self) -> Json:
        return asdict(self)


def rates(lowest: float, highest: float, steps: int) -> list[float]:
    """So many rates from the lowest to the highest, each the same factor above the one before."""
    factor = (highest / lowest) ** (1 / max(1, steps - 1))
    return [lowest * factor**step for step in range(steps)]


def curve(tried: Sequence[float], losses: Sequence[float]) -> list[Point]:
    """With an exponentially weighted mean, unbiased from the first step (Kingma & Ba 2015, section 3)."""
    points, mean = [], 0.0
    for step, (rate, loss) in enumerate(zip(tried, losses, strict=False), 1):
        mean = SMOOTHING * mean + (1 - SMOOTHING) * loss
        points.append(Point(rate, loss, mean / (1 - SMOOTHING**step)))
    return points


def has_diverged(points: Sequence[Point]) -> bool:
    """Whether to try no higher rate."""
    last = points[-1]
    if not math.isfinite(last.loss):
        return True
    return len(points) > LEAST and last.smoothed > DIVERGED * min(point.smoothed for point in points)


def find(points: Sequence[Point]) -> Found:
    """The steepest descent lies before the lowest point: what follows that only looks steep."""
    finite = [point for point in points if math.isfinite(point.smoothed)]
    diverges = points[-1].learning_rate if points and has_diverged(points) else None
    if len(finite) < LEAST:
        return Found(None, None, diverges)
    lowest = min(range(len(finite)), key=lambda at: finite[at].smoothed)
    slopes = [
        (after.smoothed - before.smoothed) / math.log(after.learning_rate / before.learning_rate)
        for before, after in zip(finite[:-2], finite[2:], strict=True)
    ][: max(0, lowest - 1)]  # at each inner point, central; up to the lowest
    steepest = min(range(len(slopes)), key=slopes.__getitem__, default=None)
    if steepest is None or slopes[steepest] >= 0:
        return Found(None, finite[lowest].learning_rate, diverges)
    return Found(finite[steepest + 1].learning_rate, finite[lowest].learning_rate, diverges)
