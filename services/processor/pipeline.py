"""One source from the ingest volume to its rows: walk → skip what is known → read → judge → store.

Wired here, and nowhere else. Values flow through generators; nothing is held but one batch.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from services.core.db import Database, Transaction
from services.core.process import failpoint
from services.processor import dedup, ingest, store
from services.processor.heartbeat import Progress
from services.processor.judge import judge, judge_path
from services.processor.reasons import BY_THE_WALK, TRIED_AGAIN, Reason
from services.processor.score import SCORER_VERSION
from services.processor.values import Content, Found, Judged, Known, Rejection


@dataclass
class Tally:
    """What one scan of a source came to."""

    source: str
    stored: int = 0  # paths that hold a content now
    rejected: Counter[str] = field(default_factory=Counter)  # by reason
    unchanged: int = 0
    retired: int = 0
    seconds: float = 0.0
    complete: bool = False  # walked to its end
    directories: list[str] = field(default_factory=list)  # that were listed, below the source

    @property
    def changed(self) -> bool:
        return bool(self.stored or self.rejected or self.retired)

    def __str__(self) -> str:
        reasons = ", ".join(f"{reason} {count}" for reason, count in self.rejected.most_common())
        return (
            f"{ingest.printable(self.source)}: {self.stored} stored, {self.rejected.total()} rejected"
            f"{f' ({reasons})' if reasons else ''}, {self.unchanged} unchanged, {self.retired} retired"
            f" in {self.seconds:.1f} s"
        )


class SourceScan:
    """One pass over one source. Safe to break off anywhere and to repeat: what is done stays done."""

    def __init__(
        self, database: Database, root: Path, source: str, progress: Progress, stop: Callable[[], object]
    ) -> None:
        self._database = database
        self._root = root
        self._source = source
        self._progress = progress
        self._stop = stop
        self._known: dict[str, Known] = {}  # what the walk has not met yet
        self._returned: list[int] = []  # retired files that are back as they were
        self._walk = ingest.Walk(root, source)
        self._tally = Tally(source)

    def run(self) -> Tally:
        """Scan to the end, or to the next batch once `stop()` is true.

        The caller holds the source's lock. Raises OSError when the source's directory cannot be
        listed (nothing is retired then), DatabaseUnavailableError when stopped while that is away.
        """
        begun, seen_before = time.monotonic(), self._progress.files_seen
        name = ingest.printable(self._source)
        source_id, self._known = self._database.run(lambda tx: store.open_source(tx, name), stop=self._stop)
        for batch in store.batches(self._judged()):
            failpoint("processor.after_read")
            self._store(source_id, batch)
            failpoint("processor.after_commit")
            elapsed = max(time.monotonic() - begun, 1e-6)
            self._progress.files_per_s = (self._progress.files_seen - seen_before) / elapsed
        if not self._stop():
            self._finish(source_id)
        self._tally.directories = self._walk.directories
        self._tally.seconds = time.monotonic() - begun
        return self._tally

    def _judged(self) -> Iterator[Judged]:
        for found in self._walk:
            if self._stop():
                return
            known = self._known.get(found.path)
            if known is not None and _is_unchanged(found, known):
                self._keep(found.path, known)
                continue
            judged = _judge(found)
            self._progress.files_seen += 1
            self._progress.moved = time.monotonic()
            if known is not None and _is_still_refused(judged, known):
                self._keep(found.path, known)
                continue
            if known is not None and _reason(judged) is Reason.VANISHED:
                continue  # still among the known: it will be retired, and what it held is not forgotten
            self._known.pop(found.path, None)
            yield judged

    def _keep(self, path: str, known: Known) -> None:
        """This path needs nothing, or no more than to be taken back."""
        del self._known[path]
        self._tally.unchanged += 1
        if known.retired:
            self._returned.append(known.id)

    def _store(self, source_id: int, batch: list[Judged]) -> None:
        contents = dedup.first_of_each(batch)

        def work(transaction: Transaction) -> None:
            store.store(transaction, source_id, batch, contents)

        self._database.run(work, stop=self._stop)
        reasons = Counter(reason.value for item in batch if (reason := _reason(item)) is not None)
        stored = len(batch) - reasons.total()
        self._tally.rejected += reasons
        self._tally.stored += stored
        self._progress.stored += stored
        self._progress.rejected += reasons.total()

    def _finish(self, source_id: int) -> None:
        unlisted = tuple(self._walk.unlisted)
        vanished = [
            known.id
            for path, known in self._known.items()
            if not known.retired and not (unlisted and path.startswith(unlisted))
        ]
        self._database.run(lambda tx: store.finish(tx, source_id, vanished, self._returned), stop=self._stop)
        self._tally.retired = len(vanished)
        self._tally.complete = True


def _is_unchanged(found: Found, known: Known) -> bool:
    """Whether what the database knows still holds, without a look at the bytes."""
    if (found.size_bytes, found.mtime_ns) != (known.size_bytes, known.mtime_ns):
        return False
    if found.refused is not None:
        return known.reason == found.refused.reason
    if known.reason is None:
        return known.scorer_version is not None and known.scorer_version >= SCORER_VERSION
    return known.reason not in BY_THE_WALK and known.reason not in TRIED_AGAIN


def _is_still_refused(judged: Judged, known: Known) -> bool:
    same = (judged.size_bytes, judged.mtime_ns) == (known.size_bytes, known.mtime_ns)
    reason = _reason(judged)
    return same and reason is not None and reason == known.reason


def _judge(found: Found) -> Judged:
    return Judged(found.path, found.size_bytes, found.mtime_ns, _outcome(found))


def _outcome(found: Found) -> Content | Rejection:
    if refused := found.refused or judge_path(found.path):
        return refused
    data = ingest.read(found.directory, found.name)
    return data if isinstance(data, Rejection) else judge(found.path, data)


def _reason(judged: Judged) -> Reason | None:
    return judged.outcome.reason if isinstance(judged.outcome, Rejection) else None
