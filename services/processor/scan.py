"""One pass over a source: what it holds now beside what is known of it, both in the order of paths.

New and changed files go into chunks for the pipeline, vanished ones are retired. Nothing is held but a
page of rows and a directory's names, whatever the size of the source.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from services.core.db import Database, Transaction
from services.processor import claims, forgotten
from services.processor.claims import Entry
from services.processor.comparison import Comparison
from services.processor.forgotten import Tombstones
from services.processor.past import Past, Read
from services.processor.progress import Progress
from services.processor.rules import Rules
from services.processor.sources import git, licence_files, options, source
from services.processor.sources.options import Options
from services.processor.sources.source import Source
from services.processor.sources.walk import Walk
from services.processor.store import known, leaving
from services.processor.tally import Tally
from services.processor.values import Known

MAX_WAITING = 64  # chunks of a source that wait to be taken; the walk pauses while there are more
WAIT = 0.05  # seconds between two looks whether others have finished their chunks
RETIRED_AT_ONCE = 5_000  # files
LOOKS = 100  # of a source that are remembered


class SourceScan:
    """Safe to break off anywhere and to repeat: what is done stays done. The caller holds the source's lock.

    `work` works off a chunk of whatever source and is true, or false when there is none to take.
    """

    def __init__(
        self,
        database: Database,
        found: Source,
        rules: Rules,
        progress: Progress,
        *,
        work: Callable[[], bool],
        stop: Callable[[], object] = lambda: False,
        most_waiting: int = MAX_WAITING,
    ) -> None:
        self._database = database
        self._most_waiting = most_waiting
        self._source = found
        self._rules = rules
        self._digest = rules.digest
        self._progress = progress
        self._work = work
        self._stop = stop
        self._tally = Tally(found.printable)
        self._forgotten = Tombstones()  # of this source, as the scan begins
        self._has_changed = False  # something was left to be read
        self._vanished: list[int] = []  # files to be retired
        self._retired: list[int] = []

    def run(self) -> Tally:
        """Scan to the end, or to the next chunk once `stop()` is true.

        Raises ConfigurationError when the source's options cannot be meant, OSError when it cannot be
        listed (nothing is retired then), DatabaseUnavailableError when stopped while that is away.
        """
        begun = time.monotonic()
        chosen = self._options()
        stamp = source.stamp(self._source, chosen)
        head = git.head(self._source.path) if self._source.kind in source.WITH_HISTORY else None
        was = self._database.run(self._open, stop=self._stop)
        self._source_id: int = was.id
        read = partial(forgotten.tombstones, source=self._source.printable)
        self._forgotten = self._database.run(read, stop=self._stop)
        if stamp is not None:
            stamp = f"{stamp}-{self._digest}"
        if stamp is None or stamp != was.stamp:
            since = self._database.run(_now, stop=self._stop)
            self._describe(chosen)
            self._queue(chosen)
            self._await_chunks()
            if not self._stop():
                self._retire()
                self._follow_renames(since)
        if not self._stop():
            if head is not None:
                past = Past(self._database, self._source, self._source_id, stop=self._stop)
                past.record(head, was.read, has_changed=self._has_changed)
            self._finish(head, None if self._tally.again else stamp)
        self._sum_up(begun)
        if self._tally.changed and not self._stop():
            self._database.run(partial(self._record, head=head), stop=self._stop)
        return self._tally

    def _options(self) -> Options:
        return options.read(self._source.path) if self._source.kind is not source.Kind.LOOSE else Options()

    def _licence(self, chosen: Options) -> str | None:
        return licence_files.of_source(self._source, chosen, self._rules.restricts_licences)

    def _walk(self, chosen: Options) -> Walk:
        return source.walk(self._source, chosen)

    def _open(self, transaction: Transaction) -> "Row":
        """The source's row, entered if it is new."""
        name, kind = self._source.printable, self._source.kind.value
        row = transaction.one("find_source", name=name)
        if row is None:
            transaction.execute("add_source", name=name, kind=kind)
            row = transaction.one("find_source", name=name)
        return Row(row.id, row.stamp, Read(row.commit_id, row.history_id, row.lines_id))

    def _describe(self, chosen: Options) -> None:
        """Record kind and licence before any file is judged by them."""
        told = chosen.licence or self._licence(chosen)
        described = {"kind": self._source.kind.value, "licence": told, "problem": None}
        self._database.run(
            lambda tx: tx.execute("describe_source", source_id=self._source_id, **described), stop=self._stop
        )

    def _queue(self, chosen: Options) -> None:
        """Cut what is new or changed into chunks. Those of an earlier walk that broke off come first."""
        while self._database.run(self._withdraw, stop=self._stop) and not self._stop():
            self._wait()
        for chunk in claims.chunks(self._entries(chosen)):
            self._has_changed = True
            put = partial(claims.put, source_id=self._source_id, entries=chunk)
            self._database.run(put, stop=self._stop)
            self._progress.queue()
            while self._database.run(self._left, stop=self._stop) > self._most_waiting and not self._stop():
                self._wait()

    def _entries(self, chosen: Options) -> Iterator[Entry]:
        """What is new or changed, in the order in which it is met; what is gone is noted."""
        compared = Comparison(self._known(), self._forgotten, self._digest, self._note_vanished, self._stop)
        if self._source.kind in source.STREAMS:
            yield from compared.archive(source.stream(self._source, chosen))
            return
        walk = self._walk(chosen)
        yield from compared.tree(walk)
        self._tally.unchanged = compared.unchanged
        self._tally.directories = walk.directories

    def _known(self) -> Iterator[Known]:
        page: list[Known] = []
        while not page or len(page) == known.KNOWN_PAGE:
            after = page[-1].path if page else ""
            following = partial(known.known_files, source_id=self._source_id, after=after)
            page = self._database.run(following, stop=self._stop)
            yield from page
            if not page:
                return

    def _note_vanished(self, row: Known) -> None:
        self._vanished.append(row.id)
        if len(self._vanished) >= RETIRED_AT_ONCE:
            self._retire()

    def _await_chunks(self) -> None:
        while not self._stop() and self._database.run(self._left, stop=self._stop):
            self._wait()

    def _wait(self) -> None:
        """Help, or give the others a moment."""
        if not self._work():
            time.sleep(WAIT)

    def _withdraw(self, transaction: Transaction) -> int:
        return claims.withdraw(transaction, self._source_id)

    def _left(self, transaction: Transaction) -> int:
        return claims.left(transaction, self._source_id)

    def _retire(self) -> None:
        """Retire the files that were not met; what nobody holds any more is not trained on."""
        if not self._vanished:
            return
        vanished, self._vanished = self._vanished, []
        self._tally.again |= self._database.run(lambda tx: leaving.retire(tx, vanished), stop=self._stop)
        self._tally.retired += len(vanished)
        self._retired += vanished

    def _follow_renames(self, since: object) -> None:
        if not self._retired:
            return
        self._tally.renamed = self._database.run(
            lambda tx: tx.execute(
                "follow_renames", source_id=self._source_id, retired=self._retired, since=since
            ),
            stop=self._stop,
        )

    def _finish(self, head: str | None, stamp: str | None) -> None:
        self._database.run(
            lambda tx: tx.execute("finish_scan", source_id=self._source_id, commit=head, stamp=stamp),
            stop=self._stop,
        )
        self._tally.complete = True

    def _sum_up(self, begun: float) -> None:
        outcome = self._progress.take_outcome(self._source_id)
        self._tally.stored, self._tally.rejected = outcome.stored, outcome.rejected
        self._tally.seconds = time.monotonic() - begun

    def _record(self, transaction: Transaction, head: str | None) -> None:
        """For people: what this look found, beside those before it."""
        tally = self._tally
        transaction.execute(
            "record_look",
            source_id=self._source_id,
            seconds=tally.seconds,
            commit=head,
            kept=tally.stored,
            refused=tally.rejected.total(),
            unchanged=tally.unchanged,
            retired=tally.retired,
            renamed=tally.renamed,
        )
        transaction.execute("drop_old_looks", source_id=self._source_id, keep=LOOKS)


@dataclass(frozen=True, slots=True)
class Row:
    """What was known of the source before this scan."""

    id: int
    stamp: str | None
    read: Read


def _now(transaction: Transaction) -> object:
    return transaction.value("database_now")
