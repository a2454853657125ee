"""The processor's life: scan what changed, rescan everything now and then, until told to stop.

One processor at a time walks a source, by a lock; the chunks that come of it are taken by all.
"""

import logging
import time
from functools import partial
from pathlib import Path

from services.core.db import Database, is_migrated
from services.core.errors import ConfigurationError, DatabaseUnavailableError
from services.core.models import ServiceState
from services.core.process import StopSignal
from services.core.settings import Settings
from services.processor import crew
from services.processor.heartbeat import Heartbeat
from services.processor.pipeline import Pipeline
from services.processor.progress import Progress
from services.processor.rules import Rules
from services.processor.scan import SourceScan
from services.processor.sources import source
from services.processor.sources.options import SUFFIX
from services.processor.sources.source import Source
from services.processor.store import known, leaving
from services.processor.tally import Tally
from services.processor.watch import Watcher

log = logging.getLogger(__name__)

CONNECTIONS = 3  # beside those of the workers: one holds the lock, one walks, one beats
RETRY_INTERVAL = 2.0  # seconds until the next try when the database or the ingest folder is away


class Worker:
    def __init__(self, settings: Settings, stop: StopSignal) -> None:
        self._ingest: Path = settings.ingest_dir.absolute()
        self._rescan_interval = settings.rescan_interval
        self._stop = stop
        self._rules = Rules.of(settings)
        workers = crew.size(settings.processor_workers)
        connections = CONNECTIONS + workers
        self._database = Database(
            settings.database(),
            application="ratchet processor",
            min_conn=connections,
            max_conn=max(settings.db_pool_max_conn, connections),
        )
        self._progress = Progress()
        self._crew = crew.Crew(self._pipeline, workers, self._progress, self._told_to_stop)
        self._heartbeat = Heartbeat(self._database, self._progress, self._ingest)
        self._news = False  # counts the last beat did not have
        self._again = False  # everything is to be looked at once more
        self._watcher = Watcher(self._ingest, stop)
        self._directories: dict[str, list[str]] = {}  # of each source, as last listed

    def run(self) -> None:
        """Until the stop signal; the database or the folder may come and go meanwhile."""
        log.info("ingest folder %s", self._ingest)
        try:
            if self._await_schema():
                with self._heartbeat:
                    self._crew.start()
                    self._work()
                self._crew.join()
        finally:
            self._watcher.close()
            self._database.close()
        log.info("stopped: %d files read, %d stored, %d rejected", self._progress.files_seen,
                 self._progress.stored, self._progress.rejected)  # fmt: skip

    def _await_schema(self) -> bool:
        """Wait until the database is there and migrated; false when told to stop first."""
        said = False
        while not self._stop:
            try:
                if self._database.run(is_migrated, stop=self._told_to_stop):
                    return True
            except DatabaseUnavailableError:
                continue
            if not said:
                log.warning("the database lacks migrations: waiting for `ratchet migrate`")
            said = True
            self._stop.wait(RETRY_INTERVAL)
        return False

    def _work(self) -> None:
        changed: set[str] | None = None  # names of sources; None: all
        next_rescan = 0.0  # monotonic seconds
        while not self._stop:
            if changed is None or time.monotonic() >= next_rescan:
                changed, next_rescan = None, time.monotonic() + self._rescan_interval
            try:
                healthy = self._scan(changed)
            except DatabaseUnavailableError as exc:
                if not self._stop:
                    log.warning("scan broken off: %s", exc)
                healthy = False
            if not healthy:
                self._stop.wait(RETRY_INTERVAL)
                changed = None
            elif self._again:  # texts that were near duplicates may be kept now
                changed, self._again = None, False
            elif self._watcher.follow(self._to_watch()):
                changed = None  # what happened before these directories were watched made no event
            else:
                changed = self._watcher.wait(max(0.1, next_rescan - time.monotonic()))

    def _scan(self, only: set[str] | None) -> bool:
        """Scan these sources, or all; false when the ingest folder cannot be read."""
        try:
            present = source.find(self._ingest)
        except OSError as exc:
            advice = "make it, or let this user read it"
            self._say(
                ServiceState.ERROR, f"cannot read the ingest folder {self._ingest} ({exc.strerror}): {advice}"
            )
            return False
        if not present:
            self._say(
                ServiceState.IDLE, f"the ingest folder {self._ingest} is empty: drop repositories into it"
            )
        self._directories = {found.name: self._directories.get(found.name, []) for found in present}
        if only is not None:
            only = {name.removesuffix(SUFFIX) for name in only}
        wanted = [found for found in present if only is None or found.name in only]
        failed = [failure for found in wanted if (failure := self._scan_source(found))]
        if only is None or only - self._directories.keys():
            self._retire_absent()
        if present:
            self._say(ServiceState.IDLE, "; ".join(failed) or None)
        return True

    def _scan_source(self, found: Source) -> str | None:
        """Scan a source unless another processor is at it; what went wrong if it cannot be listed."""
        shown = found.printable
        with self._database.exclusive(f"source:{shown}") as held:
            if not held:
                log.debug("%s: another processor is at it", shown)
                return None
            self._progress.begin(shown)
            scan = SourceScan(
                self._database,
                found,
                self._rules,
                self._progress,
                work=lambda: False,
                stop=self._told_to_stop,
            )
            try:
                tally = scan.run()
            except DatabaseUnavailableError:  # an OSError too, but not of the source
                raise
            except ConfigurationError as exc:
                return f"{exc}; {shown} is left as it is until that is mended"
            except FileNotFoundError:
                return None  # gone since it was listed: the next scan retires it
            except OSError as exc:
                return (
                    f"cannot list {shown} ({exc.strerror}), nothing of it is retired: let this user read it"
                )
            except Exception as exc:  # a fault of ours must not stop the other sources
                log.exception("%s could not be scanned", shown)
                return f"{shown} could not be scanned ({type(exc).__name__}), nothing of it is retired"
            finally:
                self._progress.source = None
        self._note(found, tally)
        return None

    def _note(self, found: Source, tally: Tally) -> None:
        if tally.complete:
            self._directories[found.name] = tally.directories
        log.log(logging.INFO if tally.changed else logging.DEBUG, "%s", tally)
        self._news |= tally.changed
        self._again |= tally.again

    def _retire_absent(self) -> None:
        """Retire the files of sources that are no longer in the ingest folder."""
        for name in self._database.run(known.live_sources, stop=self._told_to_stop):
            if self._is_present(name):
                continue
            with self._database.exclusive(f"source:{name}") as held:
                if held and not self._is_present(name):  # nor did another processor just find it there
                    retire = partial(leaving.retire_source, name=name)
                    count = self._database.run(retire, stop=self._told_to_stop)
                    log.info("%s: gone from the ingest folder, %d files retired", name, count)

    def _is_present(self, name: str) -> bool:
        """Whether the source is in the folder now; taken for present while the folder cannot be read."""
        try:
            return any(found.printable == name for found in source.find(self._ingest))
        except OSError:
            return True

    def _pipeline(self) -> Pipeline:
        return Pipeline(self._database, self._ingest, self._rules)

    def _told_to_stop(self) -> bool:
        return bool(self._stop)

    def _to_watch(self) -> set[str]:
        return {""} | {f"{name}/{raw}" for name, listed in self._directories.items() for raw in listed}

    def _say(self, state: ServiceState, message: str | None) -> None:
        """Show this state; log its message when it is a new one."""
        new = message != self._progress.message
        if new and message:
            log.log(logging.ERROR if state is ServiceState.ERROR else logging.WARNING, "%s", message)
        self._progress.state, self._progress.message = state, message
        if new or self._news:
            self._heartbeat.hurry()
        self._news = False
