"""What samples are made of: a content with its units and where it was found."""

from dataclasses import dataclass
from typing import NamedTuple

Spans = tuple[tuple[int, int], ...]  # start and end of each, in order, none touching another


class Unit(NamedTuple):
    """A named span of a text, as the table `units` stores it: bytes of UTF-8, lines from 1, both included."""

    kind: str
    name: str
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int
    comment_byte: int  # where the comments and decorators that lead it begin


@dataclass(frozen=True, slots=True)
class SampleSource:
    """A content of a round's snapshot."""

    content_id: int
    sha256: bytes
    language: str
    text: str
    score: int = 0
    units: tuple[Unit, ...] = ()  # in the order of the text
    repository: str = ""  # name of the source that one of its files is in
    path: str = ""  # of that file, below the source
    judged: Spans | None = None  # bytes of the text that count when it is evaluated; None: all of it
    cluster_id: int | None = None  # near-duplicates share it; None: nobody asked
