"""What a repository's history says of a source's files, recorded: changes of paths, times of lines."""

import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from services.core.db import Database, Transaction
from services.processor.sources import line_times
from services.processor.sources.blame import MAX_FILES, Blame, Written
from services.processor.sources.git import Repository
from services.processor.sources.history import History
from services.processor.sources.packs import ObjectError
from services.processor.sources.source import Source
from services.processor.thresholds import MAX_FILE_BYTES

log = logging.getLogger(__name__)

HISTORY_SECONDS = 20.0  # that the history of a source may take at each scan
CHANGES_SECONDS = 14.0  # of these, for the changes of paths; the times of lines get what is left
PAGE_FILES, PAGE_BYTES = 200, 8_000_000  # that are held at once


@dataclass(frozen=True, slots=True)
class Read:
    """How far a source's history was read before, as commits."""

    head: str | None  # at the last scan
    changes: str | None  # up to it the changes of all paths are known
    lines: str | None  # the times of lines were looked for from it on


class Past:
    """Records what the history up to `head` says. Safe to repeat; the caller holds the source's lock."""

    def __init__(
        self, database: Database, source: Source, source_id: int, *, stop: Callable[[], object]
    ) -> None:
        self._database = database
        self._source = source
        self._source_id = source_id
        self._stop = stop

    def record(self, head: str, read: Read, *, has_changed: bool) -> None:
        """`has_changed`: files came or changed at this scan. Raises DatabaseUnavailableError when stopped."""
        begun = time.monotonic()
        if head != read.head:
            self._record_changes(head, read.changes)
        if (head != read.lines or has_changed) and not self._stop():
            self._record_lines(head, read.lines, HISTORY_SECONDS - (time.monotonic() - begun))

    def _record_changes(self, head: str, since: str | None) -> None:
        """When each path was last changed, as far as the time for it reaches."""
        history = History(self._source.path, since, CHANGES_SECONDS)
        changes = [(change.path, change.commit, change.time) for change in history]

        def record(transaction: Transaction) -> None:
            transaction.execute("create_incoming_changes")
            transaction.copy("incoming_changes", ("path", "commit_id", "changed_at"), changes)
            transaction.execute("record_changes", source_id=self._source_id)
            if history.complete:
                transaction.execute("record_history", source_id=self._source_id, commit=head)

        self._database.run(record, stop=self._stop)

    def _record_lines(self, head: str, since: str | None, seconds: float) -> None:
        """When each line was first written, of the files of which that is not known of what they hold."""
        untold = self._database.run(self._untold, stop=self._stop)
        wanted = {row.path: row.lines_of is not None for row in untold}
        blame = Blame(self._source.path, wanted, since, budget_seconds=seconds)
        written = blame.run() if wanted else {}
        if wanted and blame.reached is None:
            return  # there was no time to begin
        with suppress(OSError), Repository(self._source.path) as repository:
            for page in _pages([row for row in untold if row.path in written]):
                if self._stop():
                    return
                told = partial(_record_page, repository=repository, rows=page, written=written)
                self._database.run(told, stop=self._stop)
        reached = None if blame.complete else blame.reached
        if reached is not None:
            log.warning(
                "%s: the times of lines are not all known: the history was read back to %s (%d commits)",
                self._source.printable, time.strftime("%Y-%m-%d", time.gmtime(reached)), blame.commits,
            )  # fmt: skip
        read = {"source_id": self._source_id, "commit": head, "reached": reached}
        self._database.run(lambda tx: tx.execute("record_lines_read", **read), stop=self._stop)

    def _untold(self, transaction: Transaction) -> list[Any]:
        return transaction.all("untold_files", source_id=self._source_id, most=MAX_FILES)


def _pages(rows: list[Any]) -> Iterator[list[Any]]:
    page: list[Any] = []
    size = 0
    for row in rows:
        if page and (len(page) >= PAGE_FILES or size + row.bytes > PAGE_BYTES):
            yield page
            page, size = [], 0
        page.append(row)
        size += row.bytes
    if page:
        yield page


def _record_page(
    transaction: Transaction, *, repository: Repository, rows: list[Any], written: dict[str, Written]
) -> None:
    transaction.execute("create_incoming_lines")
    told = _Texts(transaction, repository).told(rows, written)
    transaction.copy("incoming_lines", ("file_id", "content_id", "line_times"), list(told))
    transaction.execute("record_lines")


class _Texts:
    """What the files of a page hold beside what the repository has at HEAD."""

    def __init__(self, transaction: Transaction, repository: Repository) -> None:
        self._tx = transaction
        self._repository = repository

    def told(
        self, rows: list[Any], written: dict[str, Written]
    ) -> Iterator[tuple[int, int, line_times.Told]]:
        """File, content and times of its lines."""
        versions = {row.id: self._version(written[row.path].blob) for row in rows}
        edited = {
            row.id
            for row in rows
            if row.lines_of is not None or hashlib.sha256(versions[row.id]).digest() != bytes(row.sha256)
        }
        asked = [row.content_id for row in rows if row.id in edited]
        asked += [row.lines_of for row in rows if row.lines_of is not None]
        texts = {row.id: row for row in self._tx.all("texts_of", ids=asked)} if asked else {}
        for row in rows:
            version = versions[row.id]
            times = line_times.at_head(version, written[row.path].spans)
            if row.id in edited:
                times = _of_edited(row, version, times, texts)
            yield row.id, row.content_id, line_times.told(times)

    def _version(self, blob: bytes) -> bytes:
        """Empty when it cannot be had: nothing is known of its lines then."""
        try:
            return self._repository.objects.read(bytes.fromhex(blob.decode()), MAX_FILE_BYTES).data
        except ObjectError:
            return b""


def _of_edited(row: Any, version: bytes, times: line_times.Times, texts: dict[int, Any]) -> line_times.Times:
    """Of a text that is not the version at HEAD, or followed one whose lines are known."""
    held = texts[row.content_id]
    text, redacted = held.text.encode(), {line for _, line in held.redactions}
    times = line_times.of_text(text, version, times, redacted)
    if row.lines_of is None:
        return times
    return line_times.kept(times, text, texts[row.lines_of].text.encode(), row.line_times)
