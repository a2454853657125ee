"""What a browser would show of HTML."""

import re
from collections.abc import Iterator

HIDDEN = re.compile(rb"<(?:!--|script|style|template|svg)")
CLOSED_BY = {b"<!--": b"-->"}  # every other by its own end tag
TAG = re.compile(rb"<[^<>]{0,2000}+>")


def visible_bytes(data: bytes) -> int:
    """Bytes outside tags, comments, scripts and styles that are no white space."""
    shown = b" ".join(_shown(data.lower()))
    return sum(map(len, TAG.sub(b" ", shown).split()))


def _shown(data: bytes) -> Iterator[bytes]:
    """The parts outside hidden elements; one that is never closed hides all after it, as in a browser."""
    at = 0
    while opened := HIDDEN.search(data, at):
        yield data[at : opened.start()]
        end = CLOSED_BY.get(opened[0], b"</" + opened[0][1:])
        closed = data.find(end, opened.end())
        if closed < 0:
            return
        at = closed + len(end)
    yield data[at:]
