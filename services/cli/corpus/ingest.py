"""`ratchet ingest PATH…`: take sources in once, without the daemon, by the daemon's own code."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from services.cli.asking import connection
from services.cli.corpus.distributed import MOST_WAITING, Cluster
from services.cli.corpus.gather import gather
from services.cli.corpus.remote import Folder, FolderScan, Root, look_in
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core import log
from services.core.db import Database
from services.core.errors import ConfigurationError, DatabaseUnavailableError
from services.core.models import HEARTBEAT_STALE, Json, Service
from services.core.process import StopSignal
from services.metrics.document import strict_json
from services.processor import crew
from services.processor.pipeline import Pipeline
from services.processor.progress import Progress
from services.processor.rules import Rules
from services.processor.scan import MAX_WAITING, SourceScan
from services.processor.sources.source import Source
from services.processor.tally import Tally

CONNECTIONS = 3  # beside those of the workers: one holds the lock, one walks, one to spare
MOST_PASSES = 3  # over everything: texts that were near duplicates of what went may be kept after all
SCANS = 8  # sources walked at once for a cluster
SETTLED = 0.2  # seconds without a new chunk before a window is sent to a cluster
SHOW_EVERY = 0.5  # seconds between two lines of progress


@dataclass
class Done:
    """What became of one source."""

    source: str
    tally: Tally | None = None
    problem: str | None = None  # why it was not scanned to its end


def run(
    environment: Environment, paths: Sequence[str], *, workers: int, ray: str | None, as_json: bool
) -> bool:
    """Take the sources in, here or on the Ray cluster there, and print the tally; whether all went well.

    Raises PathError, ConfigurationError when a running processor would undo it or Ray is not to be had,
    DatabaseUnavailableError.
    """
    log.setup("ingest", "WARNING", environment.settings.secrets())
    roots = gather(paths)
    count = crew.size(workers)
    cluster = Cluster(ray) if ray else None
    connections = 2 * SCANS if cluster else count
    begun = time.monotonic()
    stop = StopSignal()
    with connection.opened(environment, "ratchet ingest", connections=connections + CONNECTIONS) as database:
        refuse_beside_daemon(database, roots, environment.settings.ingest_dir)
        ingestion = Ingestion(database, Rules.of(environment.settings), lambda: bool(stop))
        done: list[Done] = []
        for root, found in roots.items():
            done += (
                ingestion.take_in_by(cluster, root, found)
                if cluster
                else ingestion.take_in(root, found, count)
            )
    told = summary(done, time.monotonic() - begun, stopped=bool(stop))
    print(strict_json(told) if as_json else "\n".join(lines(done, told)))
    return bool(told["complete"])


def refuse_beside_daemon(database: Database, roots: dict[Root, list[Source]], ingest: Path) -> None:
    """A processor takes what is not in its ingest folder for gone, and would retire it at once."""
    if set(roots) <= {ingest.resolve()}:
        return
    with database.transaction() as transaction:
        beats = transaction.all("metrics_beats")
    for beat in beats:
        if beat.service == Service.PROCESSOR and beat.age_seconds <= HEARTBEAT_STALE:
            raise ConfigurationError(
                f"a processor ({beat.instance}) works on {database.target}: it would retire what is not in"
                " its ingest folder. Use `ratchet add`, or stop it first"
            )


class Ingestion:
    """Scans sources, one after the other, with as many workers as wanted."""

    def __init__(self, database: Database, rules: Rules, stop: Callable[[], bool] = lambda: False) -> None:
        self._database = database
        self._rules = rules
        self._stop = stop
        self._failed = False
        self._progress = Progress()
        self._show = shown(self._progress)

    def take_in(self, root: Root, found: Sequence[Source], workers: int) -> list[Done]:
        """Every source of a folder."""
        done = {each.printable: Done(each.printable) for each in found}
        ending = False
        staff = crew.Crew(
            lambda: Pipeline(self._database, Path(), self._rules, looker=look_in(root, self._rules)),
            workers,
            self._progress,
            lambda: ending or self._stop(),
        )
        staff.start()
        try:
            for _ in range(MOST_PASSES):
                tallies = [self._scan(root, each, done[each.printable]) for each in found]
                if not any(tally is not None and tally.again for tally in tallies):
                    break
        finally:
            ending = True
            staff.join()
        return list(done.values())

    def take_in_by(self, cluster: Cluster, root: Root, found: Sequence[Source]) -> list[Done]:
        """The same, judged by a Ray cluster: many sources are walked at once, to fill its windows."""
        done = {each.printable: Done(each.printable) for each in found}
        for _ in range(MOST_PASSES):
            with ThreadPoolExecutor(SCANS, "walk") as walks:
                scans = [
                    walks.submit(self._scan, root, each, done[each.printable], MOST_WAITING) for each in found
                ]
                try:
                    while not all(scan.done() for scan in scans) and not self._stop():
                        self._await_window()
                        cluster.work_off(self._database, root, self._rules, self._progress, self._stop)
                        self._show()
                except BaseException:
                    self._failed = True  # the walks would wait for ever
                    raise
            tallies = [scan.result() for scan in scans]
            if not any(tally is not None and tally.again for tally in tallies):
                break
        return list(done.values())

    def _await_window(self) -> None:
        """Until no chunk has come for a moment: a window costs seconds, whatever its size."""
        seen = -1
        while seen != self._progress.queued:
            seen = self._progress.queued
            time.sleep(SETTLED)

    def _scan(self, root: Root, found: Source, done: Done, most_waiting: int = MAX_WAITING) -> Tally | None:
        with self._database.exclusive(f"source:{found.printable}") as held:
            if not held:
                done.problem = "another processor is at it"
                return None
            self._progress.begin(found.printable)
            make = partial(FolderScan, root) if isinstance(root, Folder) else SourceScan
            scan = make(
                self._database,
                found,
                self._rules,
                self._progress,
                work=self._idle,
                stop=lambda: self._failed or self._stop(),
                most_waiting=most_waiting,
            )
            try:
                tally = scan.run()
            except DatabaseUnavailableError:  # an OSError too, but not of the source
                raise
            except (ConfigurationError, OSError) as exc:
                done.problem = str(exc)
                return None
        done.tally = tally if done.tally is None else _added(done.tally, tally)
        return tally

    def _idle(self) -> bool:
        """The walk waits for the workers: a moment to say how far they are."""
        self._show()
        return False


def _added(first: Tally, again: Tally) -> Tally:
    """Two passes over one source: what became of its files is what the second says of those it read."""
    again.stored += first.stored
    again.rejected += first.rejected
    again.retired += first.retired
    again.renamed += first.renamed
    again.seconds += first.seconds
    again.unchanged = first.unchanged
    return again


def shown(progress: Progress) -> Callable[[], None]:
    """Writes a line over itself where a person watches."""
    if not sys.stderr.isatty():
        return lambda: None
    last = 0.0

    def show() -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= SHOW_EVERY:
            last = now
            name = inert(progress.source or "")
            print(
                f"\r{name}: {progress.files_seen:,} files, {progress.files_per_s:,.0f}/s ",
                end="", file=sys.stderr, flush=True,
            )  # fmt: skip

    return show


def summary(done: Sequence[Done], seconds: float, *, stopped: bool) -> Json:
    tallies = [each.tally for each in done if each.tally is not None]
    stored = sum(tally.stored for tally in tallies)
    rejected = sum((tally.rejected for tally in tallies), Counter[str]())
    return {
        "complete": not stopped and all(each.tally and each.tally.complete for each in done),
        "stored": stored,
        "rejected": dict(rejected.most_common()),
        "unchanged": sum(tally.unchanged for tally in tallies),
        "retired": sum(tally.retired for tally in tallies),
        "seconds": round(seconds, 3),
        "files_per_s": round((stored + rejected.total()) / max(seconds, 1e-6), 1),
        "sources": [_source(each) for each in done],
    }


def _source(done: Done) -> Json:
    figures = asdict(done.tally) if done.tally else {}
    wanted = ("stored", "rejected", "unchanged", "retired", "renamed", "seconds", "complete")
    return {"source": done.source, "problem": done.problem} | {name: figures.get(name) for name in wanted}


def lines(done: Sequence[Done], told: Json) -> Iterator[str]:
    for each in done:
        yield inert(f"{each.source}: {each.problem}" if each.problem else str(each.tally))
    yield (
        f"{told['stored']:,} files stored, {sum(told['rejected'].values()):,} rejected, {told['unchanged']:,}"
        f" unchanged in {told['seconds']:.1f} s ({told['files_per_s']:,.0f} files/s)"
    )
    if not told["complete"]:
        yield "not complete: run it again to go on"
