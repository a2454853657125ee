"""Packing: documents laid densely into rows of equal length, none seeing another.

Best-fit decreasing (Ding et al., "Fewer Truncations Improve Language Modeling", 2024, section 3):
each document goes into the fullest row that still has room. Position ids start anew with every
document, from which transformers builds the block-diagonal attention mask.
"""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.trainer.samples import IGNORED, Sample

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Row:
    """Samples that share one row, in order; together at most the row's length."""

    samples: tuple[Sample, ...]

    @property
    def tokens(self) -> int:
        return sum(len(sample.ids) for sample in self.samples)


def pack(samples: Sequence[Sample], length: int) -> list[Row]:
    """Every sample in exactly one row of at most `length` tokens; deterministic.

    Raises ValueError for a sample longer than a row.
    """
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
    return [Row(tuple(samples[index] for index in row)) for row in rows]


def collate(rows: Sequence[Row], pad_id: int, *, flatten: bool = False) -> "dict[str, torch.Tensor]":
    """The rows as tensors (B, T) int64: input_ids, labels, position_ids; T is the longest row's length.

    Padding is a document of its own, without loss. No attention mask: one of ones would hide the
    position ids' boundaries. With `flatten` all rows are laid into one, (1, sum of tokens), without
    padding: what FlashAttention's variable-length kernels want.
    """
    import torch

    if flatten:
        rows = [Row(tuple(sample for row in rows for sample in row.samples))]
    width = max(row.tokens for row in rows)
    input_ids, labels, positions = [], [], []
    for row in rows:
        padding = width - row.tokens
        input_ids.append([token for s in row.samples for token in s.ids] + [pad_id] * padding)
        labels.append([label for s in row.samples for label in _labels(s)] + [IGNORED] * padding)
        positions.append([p for s in row.samples for p in range(len(s.ids))] + list(range(padding)))
    return {
        "input_ids": torch.tensor(input_ids),
        "labels": torch.tensor(labels),
        "position_ids": torch.tensor(positions),
    }


def _labels(sample: Sample) -> list[int]:
    """The sample's labels; its first token has none, since nothing of its own comes before it."""
    return [IGNORED, *sample.labels[1:]]
