"""Packing: documents laid densely into rows of equal length, none seeing another.

Best-fit decreasing (Ding et al., "Fewer Truncations Improve Language Modeling", 2024, section 3):
each document goes into the fullest row that still has room.
"""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from services.trainer.samples.sample import Sample

WINDOW_ROWS = 64  # that are filled together where samples are to stay in order


@dataclass(frozen=True)
class Row:
    """Samples that share one row, in order; together at most the row's length."""

    samples: tuple[Sample, ...]

    @property
    def tokens(self) -> int:
        return sum(len(sample.ids) for sample in self.samples)


def pack(samples: Sequence[Sample], length: int, *, keep_order: bool = False) -> list[Row]:
    """Every sample in exactly one row of at most `length` tokens; deterministic.

    Rows come in the order of their first samples, so shuffled samples make shuffled rows. With
    `keep_order`, for a curriculum, no sample shares a row with one that comes much later: they are packed
    in windows of about 64 rows. Raises ValueError for a sample longer than a row.
    """
    if not keep_order:
        return _pack(samples, length)
    rows: list[Row] = []
    start = tokens = 0
    for at, sample in enumerate(samples, 1):
        tokens += len(sample.ids)
        if tokens >= WINDOW_ROWS * length or at == len(samples):
            rows += _pack(samples[start:at], length)
            start, tokens = at, 0
    return rows


def _pack(samples: Sequence[Sample], length: int) -> list[Row]:
    longest_first = sorted(range(len(samples)), key=lambda index: (-len(samples[index].ids), index))
    rows: list[list[int]] = []
    room: list[tuple[int, int]] = []  # (tokens left, row), ascending
    for index in longest_first:
        size = len(samples[index].ids)
        if size > length:
            raise ValueError(f"a sample of {size} tokens does not fit a row of {length}")
        at = bisect.bisect_left(room, (size, -1))
        if at == len(room):
            rows.append([index])
            bisect.insort(room, (length - size, len(rows) - 1))
        else:
            left, row = room.pop(at)
            rows[row].append(index)
            bisect.insort(room, (left - size, row))
    in_order = sorted(sorted(row) for row in rows)
    return [Row(tuple(samples[index] for index in row)) for row in in_order]
