"""The values that flow between the stages: frozen, with next to no behaviour."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from services.processor.reasons import Reason
from services.processor.stages.figures import Figures


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a file is not stored: a stable reason, and its figures for a person."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Found:
    """One entry of a source as the walk met it, with all that is needed to open it later and elsewhere."""

    path: str  # below the source, always UTF-8; undecodable bytes as \xNN; a refused directory's ends in /
    size_bytes: int
    mtime_ns: int  # of a blob, which has none: the first 63 bits of its id, so that it changes with the bytes
    refused: Rejection | None = None  # by what it is, without opening it
    raw: bytes | None = None  # the path as the file system spells it, where that is not `path` in UTF-8
    blob: str | None = None  # object id, in a bare repository


@dataclass(frozen=True, slots=True)
class Read:
    """What a file held, and its size and time at that very moment: they tell if it changed since the walk."""

    data: bytes
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True)  # no slots: its figures stay with it once they are computed
class Code:
    """A decoded file: what filters and score see."""

    path: str
    language: str
    text: str
    data: bytes  # the text in UTF-8, without byte order mark
    lines: list[str]

    @cached_property
    def figures(self) -> Figures:
        return Figures(self.language, self.text, self.data, self.lines)


@dataclass(frozen=True, slots=True)
class Score:
    value: int  # 0–100, the sum of the points
    points: dict[str, int]  # reason → points
    version: int


@dataclass(frozen=True, slots=True)
class Redaction:
    """That something was taken out: what it was and where, never what it said."""

    kind: str  # as in docs/reference/secrets.md: aws_access_key, email, …
    line: int  # from 1, in the text as stored


class Unit(msgspec.Struct, frozen=True, array_like=True):  # a file has twenty, and a dataclass is slow
    """A named span of a content: bytes of the UTF-8 text, the end excluded; lines from 1, both included."""

    kind: str  # function, method, class, struct, enum, trait, impl, interface, module
    name: str
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int
    comment_byte: int  # where its leading comment, attributes and decorators begin; start_byte without any
    fingerprint: int | None = None  # of its code, in 64 bits with a sign; None: too small to matter


@dataclass(frozen=True, slots=True)
class Draft:
    """A text worth keeping, before it is known whether another like it is kept already."""

    sha256: bytes  # of the UTF-8 bytes of `text`, redacted
    language: str
    text: str
    size_bytes: int
    lines: int
    score: Score
    bands: bytes | None  # MinHash band keys, 14 of 8 bytes; None: too short to compare
    licence: str | None  # SPDX expression of its own header
    redactions: tuple[Redaction, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the first look at a file's bytes came to: a draft or a refusal, never both."""

    language: str | None  # where it was recognised, also of a refused file
    draft: Draft | None = None
    refused: Rejection | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the parser made of a text that is to be kept: its units, or a refusal."""

    units: tuple[Unit, ...] = ()
    refused: Rejection | None = None


@dataclass(slots=True)
class Outcome:
    """What became of so many files of a source."""

    source_id: int
    stored: int = 0  # paths that hold a content now
    rejected: Counter[str] = field(default_factory=Counter)  # by reason

    @property
    def files(self) -> int:
        return self.stored + self.rejected.total()

    def add(self, other: "Outcome") -> None:
        self.stored += other.stored
        self.rejected += other.rejected


@dataclass(frozen=True, slots=True)
class Known:
    """What the database says of a path already."""

    id: int
    path: str
    size_bytes: int
    mtime_ns: int
    reason: str | None
    retired: bool
    rules: int  # that it was judged by
