"""The values that flow between the stages: frozen, no behaviour."""

from dataclasses import dataclass

from services.processor.reasons import Reason


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a file is not stored: a stable reason, and its figures for a person."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Found:
    """One entry of a source as the walk met it."""

    path: str  # below the source, always UTF-8; undecodable bytes as \xNN
    size_bytes: int
    mtime_ns: int
    name: str  # its last component, as the file system spells it
    directory: int  # descriptor of the directory it lies in, open until the next entry is asked for
    refused: Rejection | None = None  # by what it is, without opening it


@dataclass(frozen=True, slots=True)
class Code:
    """A decoded file: what filters and score see."""

    path: str
    language: str
    text: str
    data: bytes  # the text in UTF-8, without byte order mark
    lines: list[str]


@dataclass(frozen=True, slots=True)
class Score:
    value: int  # 0–100, the sum of the points
    points: dict[str, int]  # reason → points
    version: int


@dataclass(frozen=True, slots=True)
class Content:
    """A text worth keeping, addressed by the SHA-256 of its UTF-8 bytes."""

    sha256: bytes
    language: str
    text: str
    bytes: int
    lines: int
    score: Score


@dataclass(frozen=True, slots=True)
class Judged:
    """A path of a source and what became of it."""

    path: str
    size_bytes: int
    mtime_ns: int
    outcome: Content | Rejection


@dataclass(frozen=True, slots=True)
class Known:
    """What the database says of a path already."""

    id: int
    size_bytes: int
    mtime_ns: int
    reason: str | None
    retired: bool
    scorer_version: int | None  # of its content
