"""Which rows a step trains on, and their batches, prepared ahead of use.

The order is a pure function of seed, round, epoch and step: a resumed round needs no other memory of it.
"""

import math
import random
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import torch

from services.trainer.engine.batch import Batch, batch_of
from services.trainer.packing import Row

AHEAD = 2  # batches of whole steps prepared before they are wanted


@dataclass(frozen=True)
class Order:
    """Rows by number, in epochs, each a new shuffle; a batch may reach from one epoch into the next."""

    rows: int
    rows_per_batch: int  # of all processes together
    epochs: float
    seed: int
    round_number: int = 0
    shuffled: bool = True  # otherwise in the order given: simple to complex
    world: int = 1

    @property
    def steps(self) -> int:
        """Batches until every row was seen `epochs` times, the last one smaller if need be."""
        return math.ceil(self._rows_in_all / self.rows_per_batch)

    def batch(self, number: int, rank: int = 0) -> list[int]:
        """Row numbers of a process's part of a batch: as many as every other process has."""
        start = number * self.rows_per_batch
        left = self._rows_in_all - start
        size = min(self.rows_per_batch, left) if left > 0 else self.rows_per_batch  # beyond: after skips
        each = math.ceil(size / self.world)
        begin = start + rank * each
        return [self._row(position) for position in range(begin, begin + each)]

    @property
    def _rows_in_all(self) -> int:
        return max(1, math.ceil(self.rows * self.epochs))

    def _row(self, position: int) -> int:
        epoch, index = divmod(position, self.rows)
        return _permutation(self, epoch)[index] if self.shuffled else index


@lru_cache(maxsize=2)
def _permutation(order: Order, epoch: int) -> list[int]:
    numbers = list(range(order.rows))
    random.Random(f"{order.seed} {order.round_number} {epoch}").shuffle(numbers)
    return numbers


class Feed:
    """Batches of whole steps, made by threads while the step before them runs."""

    def __init__(
        self, rows: Sequence[Row], order: Order, *, rank: int, pad_id: int, longest: int,
        static: bool, threads: int,
    ) -> None:  # fmt: skip
        """`static`: every micro-batch is filled up to one width, in pinned memory, as a GPU wants it."""
        self._rows = rows
        self._order = order
        self._rank = rank
        self._pad_id = pad_id
        self._longest = longest
        self._static = static
        self._threads = ThreadPoolExecutor(max(1, threads), thread_name_prefix="feed")
        self._made: dict[tuple[int, int], Future[list[Batch]]] = {}
        self.seconds_waited = 0.0

    def batches(self, number: int, micro_batch: int) -> list[Batch]:
        """A batch as micro-batches of so many rows; those that follow it are begun."""
        began = time.monotonic()
        wanted = [(later, micro_batch) for later in range(number, number + 1 + AHEAD)]
        for key in wanted:
            if key not in self._made:
                self._made[key] = self._threads.submit(self._make, *key)
        for key in self._made.keys() - set(wanted):
            self._made.pop(key).cancel()
        made = self._made[number, micro_batch].result()
        self.seconds_waited += time.monotonic() - began
        return made

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _make(self, number: int, micro_batch: int) -> list[Batch]:
        rows = [self._rows[index] for index in self._order.batch(number, self._rank)]
        fill_to = micro_batch * self._longest if self._static else None
        batches = [
            batch_of(rows[start : start + micro_batch], self._pad_id, self._longest, fill_to=fill_to)
            for start in range(0, len(rows), micro_batch)
        ]
        return [_pinned(batch) for batch in batches] if self._static else batches


def _pinned(batch: Batch) -> Batch:
    """In memory that a GPU copies from by itself, while it computes."""
    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    tensors = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    return replace(batch, **{name: tensor.pin_memory() for name, tensor in tensors.items()})
