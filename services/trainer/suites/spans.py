"""Which lines and blocks of a text a model may be asked to write: those worth asking for, and judged."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from services.trainer.samples.boundaries import lines_of
from services.trainer.samples.source import SampleSource, Spans

MIN_BEFORE = 3  # lines that stand before what is asked for
LINE_CHARACTERS = (6, 120)  # of a line without its indentation: more than a bracket, less than data
BLOCK_LINES, BLOCK_CHARACTERS = (2, 10), 400
COMMENT = re.compile(r"\s*(?:#|//|/\*|\*|--|<!--|\"\"\"|''')")
OPENS = re.compile(r"(?::|\{|=>|->|\b(?:then|do|begin))\s*(?:#.*|//.*)?$")  # a block comes after it
DOCSTRING = re.compile(r"\s*[rRbBuU]{0,2}(\"\"\"|''')")


class Span(NamedTuple):
    """Lines of a text, from 0: the first, and the one behind the last."""

    first: int
    last: int


def lines(source: SampleSource) -> list[Span]:
    """Every line of code of a usual length, without comments."""
    text = lines_of(source.text)
    judged = _Judged(text, source.judged)
    low, high = LINE_CHARACTERS
    return [
        Span(at, at + 1)
        for at, line in enumerate(text)
        if at >= MIN_BEFORE
        and low <= len(line.strip()) <= high
        and any(map(str.isalnum, line))
        and not COMMENT.match(line)
        and judged.has(at)
    ]


def blocks(source: SampleSource) -> list[Span]:
    """Bodies of functions and of statements within the text's units: what is indented below its opening line.

    The docstring of a body belongs to what stands before. Without units, of the whole text.
    """
    text = lines_of(source.text)
    judged = _Judged(text, source.judged)
    inside = {at for unit in source.units for at in range(unit.start_line, unit.end_line)}
    found = [_body(text, at) for at in (inside if source.units else range(len(text)))]
    return sorted(
        {
            span
            for span in found
            if span is not None and _is_usual(text, span) and all(map(judged.has, _full(text, span)))
        }
    )


def block_end(text: Sequence[str], first: int) -> int:
    """The line behind the block that begins at this one: before the first that is indented less.

    Or, of a longer one than any that is asked for, behind as many lines as these have at most.
    """
    depth = _depth(text[first])
    end, full = first + 1, 1
    for at in range(first + 1, len(text)):
        if text[at].strip():
            full += 1
            if _depth(text[at]) < depth or full > BLOCK_LINES[1]:
                break
            end = at + 1
    return end


def _body(text: Sequence[str], at: int) -> Span | None:
    """The block that this line is the first of."""
    if at < MIN_BEFORE or at >= len(text) or not text[at].strip() or not OPENS.search(text[at - 1].rstrip()):
        return None
    depth = _depth(text[at])
    if depth <= _depth(text[at - 1]):
        return None
    end = next((n for n in range(at, len(text)) if text[n].strip() and _depth(text[n]) < depth), len(text))
    while not text[end - 1].strip():
        end -= 1
    if (quotes := DOCSTRING.match(text[at])) is not None:
        rest = text[at][quotes.end() :]
        while quotes[1] not in rest and at + 1 < end:
            at += 1
            rest = text[at]
        at += 1
        while at < end and not text[at].strip():
            at += 1
    return Span(at, end) if at < end else None


def _is_usual(text: Sequence[str], span: Span) -> bool:
    low, high = BLOCK_LINES
    size = sum(len(line) for line in text[span.first : span.last])
    return low <= len(list(_full(text, span))) <= high and size <= BLOCK_CHARACTERS


def _full(text: Sequence[str], span: Span) -> Iterator[int]:
    """Its lines that are not blank."""
    return (at for at in range(*span) if text[at].strip())


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


class _Judged:
    """Which lines of a text count in evaluation: those that lie in its judged spans but for their blanks."""

    def __init__(self, text: Sequence[str], spans: Spans | None) -> None:
        self._text, self._spans = text, spans
        self._starts = list(accumulate((len(line.encode()) for line in text), initial=0))

    def has(self, line: int) -> bool:
        if self._spans is None:
            return True
        code = self._text[line]
        start = self._starts[line] + len(code[: _depth(code)].encode())
        end = self._starts[line] + len(code.rstrip().encode())
        at = bisect_right(self._spans, (start, self._starts[-1])) - 1
        return at >= 0 and self._spans[at][0] <= start and end <= self._spans[at][1]
