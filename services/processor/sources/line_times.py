"""The times of a stored text's lines, out of those of the version at HEAD and of the text before it. Pure."""

import codecs
import itertools
from collections.abc import Collection, Iterable, Sequence

from services.processor.sources import line_diff
from services.processor.sources.blame import Span
from services.processor.sources.line_diff import Block

Times = list[int | None]  # seconds since 1970 of each line; None: not known
Told = list[list[int]]  # [first line, last line, seconds] of lines with a known time, from 1, in order


def at_head(version: bytes, spans: Iterable[Span]) -> Times:
    """Of the lines of a version, as `blame` found them."""
    times: Times = [None] * _count(version)
    for first, lines, seconds in spans:
        last = min(first + lines, len(times))
        times[first:last] = [seconds] * (last - first)
    return times


def of_text(text: bytes, version: bytes, times: Times, redacted: Collection[int]) -> Times:
    """Of a text that was made from a version, by an edit not committed yet or by redaction.

    `redacted`: lines, from 1, that were changed in place: they are as old as what stood there.
    """
    bare = version.removeprefix(codecs.BOM_UTF8)
    shared = line_diff.blocks(line_diff.bare(text), line_diff.bare(bare))
    found: Times = [None] * _count(text)
    if shared is None:
        return found
    _carry(found, shared, times)
    ends = [Block(0, 0, 0), *shared, Block(_count(text), _count(bare), 0)]
    for one, two in itertools.pairwise(ends):
        begin, old_begin = one.new + one.lines, one.old + one.lines
        if two.new - begin == two.old - old_begin:
            for line in range(begin, two.new):
                if line + 1 in redacted:
                    found[line] = times[old_begin + line - begin]
    return found


def kept(times: Times, text: bytes, old_text: bytes, old: Iterable[Sequence[int]]) -> Times:
    """With what is known of the lines that the text before had too, where nothing else is."""
    shared = line_diff.blocks(line_diff.bare(text), line_diff.bare(old_text))
    if shared is None:
        return times
    old_times: Times = [None] * _count(old_text)
    for first, last, seconds in old:
        old_times[first - 1 : last] = [seconds] * (last - first + 1)
    known: Times = [None] * len(times)
    _carry(known, shared, old_times)
    return [before if now is None else now for now, before in zip(times, known, strict=True)]


def told(times: Times) -> Told:
    """As they are stored: lines that follow one another and are as old as one another in one row."""
    rows: Told = []
    first = 1
    for seconds, lines in itertools.groupby(times):
        number = sum(1 for _ in lines)
        if seconds is not None:
            rows.append([first, first + number - 1, seconds])
        first += number
    return rows


def _carry(times: Times, shared: Iterable[Block], old: Times) -> None:
    for new, was, lines in shared:
        times[new : new + lines] = old[was : was + lines]


def _count(text: bytes) -> int:
    """Lines, as git and units count them: a line break begins none."""
    return text.count(b"\n") + (not text.endswith(b"\n") and bool(text))
