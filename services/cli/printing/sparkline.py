"""A curve or a histogram in one line of text."""

import math
from collections.abc import Sequence
from itertools import pairwise

BARS = "▁▂▃▄▅▆▇█"
GAP = " "


def sparkline(values: Sequence[float | None], width: int = 60) -> str:
    """A bar a value, or a bar for the mean of neighbours where there are more than `width`.

    The lowest value has the lowest bar; what is not finite leaves a gap.
    """
    means = [_mean(part) for part in _parts(values, width)]
    finite = [value for value in means if value is not None]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(GAP if value is None else BARS[round((value - low) * scale)] for value in means)


def histogram(counts: Sequence[int]) -> str:
    """A bar a count, the highest full; a count above nought always shows."""
    highest = max(counts, default=0)
    if not highest:
        return ""
    return "".join((GAP + BARS)[-(-len(BARS) * count // highest)] for count in counts)


def _parts(values: Sequence[float | None], width: int) -> list[Sequence[float | None]]:
    """The values in `width` runs of nearly equal length, or one by one when there are no more."""
    count = min(width, len(values))
    edges = [len(values) * index // count for index in range(count + 1)] if count else []
    return [values[start:end] for start, end in pairwise(edges)]


def _mean(values: Sequence[float | None]) -> float | None:
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(value / len(finite) for value in finite) if finite else None
