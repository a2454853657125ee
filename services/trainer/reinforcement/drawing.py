"""Which tasks an iteration works on. Pure: the same whenever it is asked again."""

from collections.abc import Sequence
from typing import TypeVar

from services.trainer.samples.chance import draw

Item = TypeVar("Item")


def drawn(items: Sequence[Item], count: int, step: int, *, seed: int, round_number: int) -> list[Item]:
    """The `count` items of iteration `step` (from 0): all come once an epoch, each epoch in its own order.

    Raises ValueError when there is none to draw from.
    """
    if not items:
        raise ValueError("no task to draw from: expected one at least")
    places = range(step * count, (step + 1) * count)
    orders: dict[int, list[Item]] = {}
    for epoch in {place // len(items) for place in places}:
        orders[epoch] = list(items)
        draw("tasks", seed, round_number, epoch).shuffle(orders[epoch])
    return [orders[place // len(items)][place % len(items)] for place in places]
