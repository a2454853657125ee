"""`ratchet export FILE.jsonl`: every stored text with what is known of it, a file of the corpus a line.

Read page by page, each in a transaction of its own: memory stays level and no snapshot is held, however
long it takes. What a scan changes meanwhile may be in it or not.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from services.cli.asking import connection
from services.cli.corpus.exportfile import Sink, opened
from services.cli.corpus.recorded import Percentiles, may_read
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.db import Database
from services.core.errors import ConfigurationError

PAGE = 500  # rows
BATCH_BYTES = 8_000_000  # of texts held at once, or one text
SHOW_EVERY = 0.5  # seconds between two lines of progress


class Redacted(msgspec.Struct, frozen=True):
    kind: str
    line: int


class Span(msgspec.Struct, frozen=True):
    kind: str
    name: str
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int


class Stored(msgspec.Struct, frozen=True):
    """A line of the export: a file and the content it holds."""

    source: str
    path: str
    language: str
    text: str  # as stored, redacted
    sha256: str  # of its UTF-8 bytes
    score: int
    score_reasons: dict[str, int]
    scorer_version: int
    percentile: float | None  # how many of 100 contents of its language score lower
    redactions: list[Redacted]
    units: list[Span]
    cluster: int
    licence: str | None  # its own, or else its source's
    commit: str | None  # last one that changed it
    changed_at: datetime | None
    source_commit: str | None
    rejected: bool = False


class Refused(msgspec.Struct, frozen=True):
    """A line of the export: a file that is not stored."""

    source: str
    path: str
    language: str | None
    reason: str
    detail: str | None
    duplicate_of: str | None  # SHA-256 of the text that is kept in its stead
    rejected: bool = True


@dataclass
class Count:
    stored: int = 0
    rejected: int = 0
    begun: float = 0.0
    shown: float = 0.0

    @property
    def rate(self) -> float:
        """Rows a second."""
        return (self.stored + self.rejected) / max(time.monotonic() - self.begun, 1e-6)


def run(environment: Environment, target: str, *, rejected: bool, force: bool, as_json: bool) -> None:
    """Write the file, whole or not at all; `-` is standard output.

    Raises ConfigurationError when the target cannot be written, DatabaseUnavailableError.
    """
    count = Count(begun=time.monotonic())
    with (
        opened(target, force=force) as sink,
        connection.opened(environment, "ratchet export") as database,
    ):
        write(lines(database, rejected=rejected), sink, count, _progress())
    seconds = time.monotonic() - count.begun
    summary = {
        "file": target,
        "stored": count.stored,
        "rejected": count.rejected,
        "seconds": round(seconds, 3),
        "rows_per_s": round((count.stored + count.rejected) / max(seconds, 1e-6), 1),
    }
    out = sys.stderr if target == "-" else sys.stdout
    if as_json:
        print(msgspec.json.encode(summary).decode(), file=out)
    else:
        also = f" and {count.rejected:,} rejections" if rejected else ""
        where = "" if target == "-" else f" to {inert(target)}"
        print(f"{count.stored:,} files{also}{where} in {seconds:.1f} s", file=out)


def write(
    rows: Iterator[Stored | Refused], sink: Sink, count: Count, progress: Callable[[Count], None]
) -> None:
    encoder = msgspec.json.Encoder()
    buffer = bytearray()
    for row in rows:
        encoder.encode_into(row, buffer)
        buffer += b"\n"
        sink.write(buffer)
        buffer.clear()
        if row.rejected:
            count.rejected += 1
        else:
            count.stored += 1
        progress(count)


def lines(database: Database, *, rejected: bool) -> Iterator[Stored | Refused]:
    """Every live file by source and path; of rejected ones only when asked for."""
    with database.transaction() as transaction:
        if not may_read(transaction, "contents"):
            raise ConfigurationError(
                f"{database.target.user} may not read the texts: name the owner in DATABASE_URL, or run this"
                " as the processor (`docker-compose exec processor ratchet export -`)"
            )
        sources = transaction.all("source_names")
        readable = may_read(transaction, "score_histogram")
        percentiles = Percentiles(transaction.all("score_histogram") if readable else [])
    for source in sources:
        after: str | None = ""
        while after is not None:
            page = _page(database, source.id, after, rejected)
            after = page[-1].path if len(page) == PAGE else None
            for batch in _batches(page):
                yield from _lines(database, source, batch, percentiles)


def _page(database: Database, source_id: int, after: str, rejected: bool) -> list[Any]:
    with database.transaction() as transaction:
        return transaction.all("export_files", source_id=source_id, after=after, rejected=rejected, most=PAGE)


def _batches(page: list[Any]) -> Iterator[list[Any]]:
    """The rows of a page in order, cut where their texts would be too much to hold."""
    batch: list[Any] = []
    size = 0
    for row in page:
        if batch and size + (row.bytes or 0) > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row.bytes or 0
    if batch:
        yield batch


def _lines(
    database: Database, source: Any, batch: list[Any], percentiles: Percentiles
) -> Iterator[Stored | Refused]:
    ids = sorted({row.content_id for row in batch if row.content_id is not None})
    texts: dict[int, str] = {}
    units: dict[int, list[Span]] = {content_id: [] for content_id in ids}
    if ids:
        with database.transaction() as transaction:
            texts.update(transaction.all("export_texts", ids=ids))
            for content_id, *span in transaction.all("export_units", ids=ids):
                units[content_id].append(Span(*span))
    for row in batch:
        if row.content_id is None:
            told = (row.language, row.reason, row.detail, row.duplicate_of)
            yield Refused(source.name, row.path, *told)
        else:
            yield Stored(
                source=source.name,
                path=row.path,
                language=row.language,
                text=texts[row.content_id],
                sha256=row.sha256,
                score=row.score,
                score_reasons=row.score_reasons,
                scorer_version=row.scorer_version,
                percentile=percentiles.of(row.language, row.score),
                redactions=[Redacted(kind, line) for kind, line in row.redactions],
                units=units[row.content_id],
                cluster=row.cluster_id,
                licence=row.licence or source.licence,
                commit=row.commit_id,
                changed_at=row.changed_at,
                source_commit=source.commit_id,
            )


def _progress() -> Callable[[Count], None]:
    """Shows how far it is where a person watches."""
    if not sys.stderr.isatty():
        return lambda _count: None

    def show(count: Count) -> None:
        if (now := time.monotonic()) - count.shown >= SHOW_EVERY:
            count.shown = now
            total = count.stored + count.rejected
            print(f"\r{total:,} files, {count.rate:,.0f}/s ", end="", file=sys.stderr, flush=True)

    return show
