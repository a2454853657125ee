"""A micro-batch as the model gets it: rows laid end to end, and where each document begins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy
import torch

from services.trainer.packing import Row
from services.trainer.samples.sample import IGNORED

BOUNDARIES = 16  # boundaries are filled up to this times a power of four: few shapes to compile for


@dataclass(frozen=True)
class Batch:
    """T tokens of D documents. Padding is a document of its own, without a target."""

    input_ids: torch.Tensor  # (T,) int64
    targets: torch.Tensor  # (T,) int64: the token each position predicts, IGNORED where none is learned
    position_ids: torch.Tensor  # (T,) int64, from 0 in every document
    boundaries: torch.Tensor  # (≥ D + 1,) int32: where documents begin, then T repeated
    longest: int  # no document has more tokens
    even: bool  # every document has just so many
    tokens: int  # without padding
    learned_at: torch.Tensor  # (N,) int64: the positions whose target counts

    @property
    def learned(self) -> int:
        """How many targets count."""
        return len(self.learned_at)

    def to(self, device: torch.device) -> "Batch":
        """The same on another device; copies from pinned memory overlap with computing."""

        def move(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(device, non_blocking=True)

        return replace(
            self,
            input_ids=move(self.input_ids),
            targets=move(self.targets),
            position_ids=move(self.position_ids),
            boundaries=move(self.boundaries),
            learned_at=move(self.learned_at),
        )


def batch_of(rows: Sequence[Row], pad_id: int, longest: int, *, fill_to: int | None = None) -> Batch:
    """The rows end to end, filled up to `fill_to` tokens; `longest` bounds a document's length.

    Raises ValueError when the rows hold more than `fill_to` tokens.
    """
    samples = [sample for row in rows for sample in row.samples]
    lengths = [len(sample.ids) for sample in samples]
    tokens = sum(lengths)
    width = tokens if fill_to is None else fill_to
    if tokens > width:
        raise ValueError(f"{tokens} tokens do not fit into {width}")
    lengths += [min(longest, width - start) for start in range(tokens, width, longest)]
    starts = numpy.cumsum([0, *lengths])[:-1]
    ids = numpy.full(width, pad_id)  # (T,) int64, as all of these
    targets = numpy.full(width, IGNORED)
    for sample, start in zip(samples, starts, strict=False):
        own = numpy.asarray(sample.ids)
        first = max(1, sample.prompt_tokens)  # the first token that is learned
        ids[start : start + len(own)] = own
        targets[start + first - 1 : start + len(own) - 1] = own[first:]
    places = BOUNDARIES
    while places < len(starts) + 1:
        places *= 4
    boundaries = numpy.full(places, width, dtype=numpy.int32)
    boundaries[: len(starts)] = starts
    return Batch(
        input_ids=torch.from_numpy(ids),
        targets=torch.from_numpy(targets),
        position_ids=torch.from_numpy(numpy.arange(width) - numpy.repeat(starts, lengths)),
        boundaries=torch.from_numpy(boundaries),
        longest=longest,
        even=len(starts) * longest == width,
        tokens=tokens,
        learned_at=torch.from_numpy(numpy.flatnonzero(targets != IGNORED)),
    )
