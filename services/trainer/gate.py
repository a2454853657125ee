"""The gate: promote only what is better on this code, beyond noise. Pure: figures in, verdict out."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

RESAMPLES = 2000  # bootstrap resamples: the interval's own error is then about 0.1 of its width
MIN_ITEMS = 5  # held-out contents below which no interval means anything


@dataclass(frozen=True)
class Item:
    """One held-out content under two models, in nats over its code."""

    before: float
    after: float
    bytes: int


@dataclass(frozen=True)
class Verdict:
    promoted: bool
    reason: str  # a sentence for a person
    against: str  # "base" or "champion"
    improvement: float  # relative fall of bits per byte, 0.03 = 3 % fewer
    low: float  # ends of its confidence interval
    high: float
    held_out_files: int
    held_out_bytes: int
    bits_per_byte: Mapping[str, float | None] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def decide(
    items: Sequence[Item], *, against: str, min_improvement: float, confidence: float, seed: int
) -> Verdict:
    """A paired bootstrap over held-out contents (Efron & Tibshirani 1993, ch. 13; the unit is the file).

    Promotes when the lower end of the two-sided interval of the relative improvement lies above zero
    and the improvement itself is at least `min_improvement`. A loss that is not finite refuses.
    """
    size = sum(item.bytes for item in items)
    if not all(math.isfinite(item.before) and math.isfinite(item.after) for item in items):
        return refuse("the held-out loss is not finite: the training diverged", against, len(items), size)
    if len(items) < MIN_ITEMS:
        return refuse(too_few(len(items)), against, len(items), size)
    improvement = _improvement(items)
    low, high = _interval(items, confidence, seed)
    share = f"{abs(improvement):.2%}"
    interval = f"{confidence:.0%} interval {low:+.2%} to {high:+.2%}, {len(items)} held-out files"
    if low <= 0:
        direction = "better" if improvement > 0 else "worse"
        reason = f"not better than the {against} beyond noise: {share} {direction} ({interval})"
    elif improvement < min_improvement:
        reason = f"{share} better than the {against}, the recipe wants {min_improvement:.2%} ({interval})"
    else:
        reason = f"{share} fewer bits per byte than the {against} ({interval})"
    promoted = low > 0 and improvement >= min_improvement
    return Verdict(promoted, reason, against, improvement, low, high, len(items), size)


def refuse(reason: str, against: str, held_out_files: int = 0, held_out_bytes: int = 0) -> Verdict:
    """A refusal without a measurement: its figures are NaN, which the ledger stores as null."""
    return Verdict(False, reason, against, math.nan, math.nan, math.nan, held_out_files, held_out_bytes)


def too_few(held_out_files: int) -> str:
    return f"{held_out_files} held-out files are too few to decide by, {MIN_ITEMS} are needed: add more code"


def _improvement(items: Sequence[Item]) -> float:
    before = sum(item.before for item in items)
    return 1.0 - sum(item.after for item in items) / before if before > 0 else 0.0


def _interval(items: Sequence[Item], confidence: float, seed: int) -> tuple[float, float]:
    draw = random.Random(seed)
    resampled = sorted(_improvement(draw.choices(items, k=len(items))) for _ in range(RESAMPLES))
    tail = (1.0 - confidence) / 2
    return resampled[int(tail * RESAMPLES)], resampled[min(RESAMPLES - 1, int((1 - tail) * RESAMPLES))]
