"""How often each content was trained on: counted from the batches that led to the published weights.

The order of rows follows from seed, round, epoch and step (engine/feed.py), so nothing is written down
while training runs: the steps are gone through again, without a model.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from services.trainer.engine.faults import Faults
from services.trainer.packing import Row
from services.trainer.samples.sample import Extract

NO_CONTENT = -1  # stands for what a sample is made of that does not say


class Order(Protocol):
    """What is used of engine/feed.py's."""

    def batch(self, number: int, rank: int = 0) -> list[int]: ...


@dataclass(slots=True)
class Exposure:
    """Of one content."""

    seen: int = 0  # times that a sample of it was in a step
    samples: int = 0  # made of it
    tokens: int = 0  # in those steps
    _lines: list[tuple[int, int]] = field(default_factory=list)

    def add(self, first_line: int, last_line: int, tokens: int, times: int) -> None:
        self.samples += 1
        self.seen += times
        self.tokens += times * tokens
        if times and first_line <= last_line:
            self._lines.append((first_line, last_line))

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """First and last of the lines that were in a step; those that touch are one."""
        joined: list[tuple[int, int]] = []
        for first, last in sorted(self._lines):
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(joined[-1][1], last))
            else:
                joined.append((first, last))
        return tuple(joined)


def is_counted(training: Mapping[str, Any]) -> bool:
    """Whether it is known how many processes shared every step."""
    return bool(training["processes"]) and training["processes"][0][0] == 0


def batches(training: Mapping[str, Any], order_of: Callable[[int], Order]) -> Iterator[list[int]]:
    """Row numbers of each step behind the weights. `training`: the figures of the finished training.

    `order_of` gives the order for a number of processes. Where that number is not known of the first steps,
    it is taken to be the first one that is.
    """
    shares = [(int(step), int(number)) for step, number in training["processes"]] or [(0, 1)]
    faults = Faults(skipped=tuple(training["left_out"]))
    orders = {number: order_of(number) for _, number in shares}
    for step in range(training["weights_step"]):
        world = next((number for since, number in reversed(shares) if since <= step), shares[0][1])
        order = orders[world]
        yield [row for rank in range(world) for row in order.batch(faults.batch_of(step), rank)]


def count(rows: Sequence[Row], taken: Iterable[Sequence[int]]) -> dict[int, Exposure]:
    """By content, also of those whose samples were in no step. `taken`: row numbers of each step."""
    times = Counter(row for batch in taken for row in batch)
    found: dict[int, Exposure] = {}
    for number, row in enumerate(rows):
        for sample in row.samples:
            for each in sample.extracts or (Extract(NO_CONTENT, 1, 0, len(sample.ids)),):
                exposure = found.setdefault(each.content_id, Exposure())
                exposure.add(each.first_line, each.last_line, each.tokens, times[number])
    return found
