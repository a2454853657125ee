"""A text line by line: inert, with its units and what was taken out of it marked. Pure.

Nothing is parsed and no syntax is coloured: what is shown is hostile, and a lexer in this process could be
made to hang by it. Units and comments are where the processor's parser, which is killable, has found them.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from markupsafe import Markup, escape

from services.metrics.pages.words import marked

DEEPEST = 4  # of nested units that are told apart
LINES = 1000  # shown at once


@dataclass(frozen=True)
class Line:
    number: int  # from 1
    html: Markup
    depth: int = 0  # in how many units it lies
    begins: tuple[str, ...] = ()  # units that begin with it: "function parse_invoice"
    is_comment: bool = False  # of the comment before a unit
    redacted: tuple[str, ...] = ()  # kinds of what was taken out of it


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a text."""

    lines: tuple[Line, ...]
    total: int

    @property
    def before(self) -> int | None:
        """The first line of the excerpt before this one."""
        first = self.lines[0].number if self.lines else 1
        return max(1, first - LINES) if first > 1 else None

    @property
    def after(self) -> int | None:
        """The first line of the one behind it."""
        last = self.lines[-1].number if self.lines else self.total
        return last + 1 if last < self.total else None


def excerpt(text: str, units: Sequence[Any], redactions: Iterable[Sequence[Any]], first: int = 1) -> Excerpt:
    """At most LINES lines from the `first`.

    Args:
        text: the whole of it.
        first: number of a line, from 1; beyond the end the last is meant.
        units: with kind, name, start_line, end_line, start_byte and comment_byte, of the whole text.
        redactions: [kind, line] of what was taken out.
    """
    whole = text.removesuffix("\n").split("\n")
    first = min(first, len(whole))
    comments = _comment_lines(whole, units)
    depths, begins = _depths(units, len(whole)), _beginnings(units)
    redacted: dict[int, tuple[str, ...]] = {}
    for kind, line in redactions:
        redacted[line] = (*redacted.get(line, ()), str(kind))
    lines = (
        Line(
            number=number,
            html=shown(line),
            depth=min(depths[number], DEEPEST),
            begins=begins.get(number, ()),
            is_comment=number in comments,
            redacted=redacted.get(number, ()),
        )
        for number, line in enumerate(whole[first - 1 : first - 1 + LINES], start=first)
    )
    return Excerpt(tuple(lines), len(whole))


def shown(line: str) -> Markup:
    """The line as HTML that does nothing; what hides or turns writing round is spelled out and marked."""
    return escape(line) if line.replace("\t", "").isprintable() else marked(line)


def _depths(units: Sequence[Any], lines: int) -> list[int]:
    """In how many units each line lies, by its number."""
    changes = [0] * (lines + 2)
    for unit in units:
        changes[min(unit.start_line, lines + 1)] += 1
        changes[min(unit.end_line, lines) + 1] -= 1
    return list(accumulate(changes))


def _beginnings(units: Sequence[Any]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for unit in units:
        found[unit.start_line] = (*found.get(unit.start_line, ()), f"{unit.kind} {unit.name}")
    return found


def _comment_lines(lines: Sequence[str], units: Sequence[Any]) -> set[int]:
    """Lines of the comments that lead units."""
    if not any(unit.comment_byte < unit.start_byte for unit in units):
        return set()
    starts = list(accumulate((len(line.encode()) + 1 for line in lines), initial=0))  # bytes before each line
    found: set[int] = set()
    for unit in units:
        if unit.comment_byte < unit.start_byte:
            found.update(range(bisect_right(starts, unit.comment_byte), unit.start_line))
    return found
