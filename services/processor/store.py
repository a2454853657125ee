"""What was judged becomes rows: in batches, each one transaction, each safe to repeat.

The texts go by COPY into a temporary table and from there into place, so that a text which another
source or another processor stored meanwhile is not stored again.
"""

import time
from collections.abc import Iterable, Iterator, Sequence

from services.core.db import Transaction
from services.core.process import failpoint
from services.processor.values import Content, Judged, Known, Rejection

BATCH_FILES = 500
BATCH_BYTES = 8_000_000  # of text
BATCH_SECONDS = 2.0  # what was read waits no longer than this for the rest of its batch

CONTENT_COLUMNS = (
    "sha256", "language", "text", "bytes", "lines", "score", "score_reasons", "scorer_version",
)  # fmt: skip
FILE_COLUMNS = ("path", "size_bytes", "mtime_ns", "sha256", "reason", "detail")


def batches(judged: Iterable[Judged]) -> Iterator[list[Judged]]:
    """The stream cut into batches: by number, by bytes of text, and by time."""
    batch: list[Judged] = []
    size, begun = 0, time.monotonic()
    for item in judged:
        if not batch:
            begun = time.monotonic()
        batch.append(item)
        size += item.outcome.bytes if isinstance(item.outcome, Content) else 0
        if len(batch) >= BATCH_FILES or size >= BATCH_BYTES or time.monotonic() - begun >= BATCH_SECONDS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def open_source(transaction: Transaction, name: str) -> tuple[int, dict[str, Known]]:
    """The source's id, entered if it is new, and all that is known of its paths."""
    source_id = transaction.value("find_source", name=name)
    if source_id is None:
        return int(transaction.value("add_source", name=name)), {}
    rows = transaction.all("known_files", source_id=source_id)
    return int(source_id), {
        row.path: Known(row.id, row.size_bytes, row.mtime_ns, row.reason, row.retired, row.scorer_version)
        for row in rows
    }


def store(
    transaction: Transaction, source_id: int, judged: Sequence[Judged], contents: dict[bytes, Content]
) -> None:
    """Record what became of these paths; `contents` are the texts among them, each once."""
    transaction.execute("create_incoming_contents")
    transaction.execute("create_incoming_files")
    transaction.copy("incoming_files", FILE_COLUMNS, map(_file_row, judged))
    if new := _new(transaction, contents):
        transaction.copy("incoming_contents", CONTENT_COLUMNS, map(_content_row, new))
        transaction.execute("insert_contents", source_id=source_id)
        transaction.execute("begin_clusters")
    transaction.execute("upsert_files", source_id=source_id)
    failpoint("processor.before_commit")


def _new(transaction: Transaction, contents: dict[bytes, Content]) -> list[Content]:
    """The texts not stored yet, or stored with the score of an older scorer."""
    if not contents:
        return []
    version = next(iter(contents.values())).score.version
    rows = transaction.all("stored_contents", addresses=list(contents), scorer_version=version)
    stored = {bytes(row.sha256) for row in rows}
    return [content for address, content in contents.items() if address not in stored]


def finish(
    transaction: Transaction, source_id: int, vanished: Sequence[int], returned: Sequence[int]
) -> None:
    """End a complete walk: retire the files it did not meet, take back those that returned unchanged."""
    if returned:
        transaction.execute("restore_files", ids=list(returned))
    if vanished:
        transaction.execute("retire_files", ids=list(vanished))
    transaction.execute("finish_scan", source_id=source_id)


def retire_source(transaction: Transaction, name: str) -> int:
    """Retire every file of a source that is gone; how many there were."""
    source_id = transaction.value("find_source", name=name)
    return transaction.execute("retire_source", source_id=source_id)


def _file_row(item: Judged) -> tuple[object, ...]:
    outcome = item.outcome
    if isinstance(outcome, Rejection):
        said = (None, outcome.reason.value, outcome.detail)
        return (item.path, item.size_bytes, item.mtime_ns, *said)
    return (item.path, item.size_bytes, item.mtime_ns, outcome.sha256, None, None)


def _content_row(content: Content) -> tuple[object, ...]:
    score = content.score
    measured = (content.bytes, content.lines, score.value, score.points, score.version)
    return (content.sha256, content.language, content.text, *measured)


def live_sources(transaction: Transaction) -> list[str]:
    """Names of the sources that have files which are not retired."""
    return [str(row.name) for row in transaction.all("live_sources")]
