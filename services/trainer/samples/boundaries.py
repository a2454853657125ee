"""Where a text may be cut without tearing a thought: between units, at blank lines, between statements."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from services.trainer.samples.source import Unit

UNIT, NESTED_UNIT, BLANK, STATEMENT, LINE = range(5)  # how good a cut is, best first
GOES_ON = re.compile(r"(?:[,(\[{:=+*/%&|<^~.\\-]|->|=>|\b(?:and|or|not|in|is|else|do|then|return))\s*$")
IS_TAIL = re.compile(
    r"\s*(?:[)\]}.,:?]|(?:else|elif|except|finally|catch|rescue|case|when|default)\b|&&|\|\|)"
)


def lines_of(text: str) -> list[str]:
    r"""The lines with their ends; as for units they end at `\n` alone."""
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


class Boundaries:
    """Of one text: how good it is to cut before each of its lines."""

    def __init__(self, lines: Sequence[str], units: Sequence[Unit]) -> None:
        self.lines = lines
        self._units = _unit_edges(lines, units)

    def rank(self, line: int) -> int:
        """UNIT … LINE for a cut before this line, counted from 0."""
        if (edge := self._units.get(line)) is not None:
            return edge
        above, below = self.lines[line - 1], self.lines[line]
        if IS_TAIL.match(below):
            return LINE
        if not above.strip():
            return BLANK if below.strip() else LINE
        if not below.strip() or GOES_ON.search(above) or _indent(below) > _indent(above):
            return LINE
        return STATEMENT

    def best(self, allowed: Sequence[int], wanted: float) -> int:
        """The best of the allowed lines to cut before; of equal ones the nearest to the wanted one."""
        return min(allowed, key=lambda line: (self.rank(line), abs(line - wanted)))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _unit_edges(lines: Sequence[str], units: Sequence[Unit]) -> dict[int, int]:
    """The lines (from 0) that units begin at, with their comments, or end before; how good a cut that is."""
    edges: dict[int, int] = {}
    open_ends: list[int] = []  # last lines of the units around
    starts: list[int] | None = None
    for unit in units:
        while open_ends and open_ends[-1] < unit.start_line:
            open_ends.pop()
        rank = NESTED_UNIT if open_ends else UNIT
        first = unit.start_line - 1
        if unit.comment_byte < unit.start_byte:
            if starts is None:
                starts = list(accumulate(len(line.encode()) for line in lines))
            first = bisect_right(starts, unit.comment_byte)
        for line in (first, unit.end_line):
            edges[line] = min(rank, edges.get(line, LINE))
        open_ends.append(unit.end_line)
    return edges
