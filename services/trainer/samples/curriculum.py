"""Simple samples first."""

from collections.abc import Mapping, Sequence

from services.trainer.samples.boundaries import lines_of
from services.trainer.samples.sample import Sample
from services.trainer.samples.source import SampleSource

INDENT = 4  # columns a level; a tab is one


def in_order(samples: Sequence[Sample], contents: Sequence[SampleSource]) -> list[Sample]:
    """By tokens times how deeply their content nests; of equal ones as they came.

    Length and nesting are what is cheap to know of a code's difficulty, and the same on every machine.
    """
    nests: Mapping[int, float] = {content.content_id: nesting(content) for content in contents}
    return sorted(samples, key=lambda sample: len(sample.ids) * (1 + nests.get(sample.content_id, 0.0)))


def nesting(content: SampleSource) -> float:
    """Mean level of indentation of its lines, plus the mean number of units around a unit."""
    levels = [
        (len(head) + (INDENT - 1) * head.count("\t")) / INDENT
        for line in lines_of(content.text)
        if (head := line[: len(line) - len(line.lstrip())]) != line
    ]
    depths: list[int] = []
    around: list[int] = []  # where the units around end
    for unit in content.units:
        while around and around[-1] <= unit.start_byte:
            around.pop()
        depths.append(len(around))
        around.append(unit.end_byte)
    return sum(levels) / max(1, len(levels)) + sum(depths) / max(1, len(depths))
