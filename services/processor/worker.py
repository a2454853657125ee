"""The processor's life: scan what changed, rescan everything now and then, until told to stop.

Several processors share the work by a lock a source: one that another holds is left to it.
"""

import logging
import time
from functools import partial
from pathlib import Path

from services.core.db import Database, is_migrated
from services.core.errors import DatabaseUnavailableError
from services.core.models import ServiceState
from services.core.process import StopSignal
from services.core.settings import Settings
from services.processor import ingest, store
from services.processor.heartbeat import Heartbeat, Progress
from services.processor.pipeline import SourceScan, Tally
from services.processor.watch import Watcher

log = logging.getLogger(__name__)

CONNECTIONS = 3  # at least: one holds the lock, one stores, one beats
RETRY_INTERVAL = 2.0  # seconds until the next try when the database or the ingest folder is away


class Worker:
    def __init__(self, settings: Settings, stop: StopSignal) -> None:
        self._ingest: Path = settings.ingest_dir.absolute()
        self._rescan_interval = settings.rescan_interval
        self._stop = stop
        self._database = Database(
            settings.database(),
            application="ratchet processor",
            min_conn=min(settings.db_pool_min_conn, CONNECTIONS),
            max_conn=max(settings.db_pool_max_conn, CONNECTIONS),
        )
        self._progress = Progress()
        self._heartbeat = Heartbeat(self._database, self._progress)
        self._news = False  # counts the last beat did not have
        self._watcher = Watcher(self._ingest, stop)
        self._directories: dict[str, list[str]] = {}  # of each source, as last listed

    def run(self) -> None:
        """Until the stop signal; the database or the folder may come and go meanwhile."""
        log.info("ingest folder %s", self._ingest)
        try:
            if self._await_schema():
                with self._heartbeat:
                    self._work()
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
            elif self._watcher.follow(self._to_watch()):
                changed = None  # what happened before these directories were watched made no event
            else:
                changed = self._watcher.wait(max(0.1, next_rescan - time.monotonic()))

    def _scan(self, only: set[str] | None) -> bool:
        """Scan these sources, or all; false when the ingest folder cannot be read."""
        try:
            present = ingest.sources(self._ingest)
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
        self._directories = {name: self._directories.get(name, []) for name in present}
        wanted = [name for name in present if only is None or name in only]
        failed = [failure for name in wanted if (failure := self._scan_source(name))]
        if only is None or only - set(present):
            self._retire_absent()
        if present:
            self._say(ServiceState.IDLE, "; ".join(failed) or None)
        return True

    def _scan_source(self, name: str) -> str | None:
        """Scan a source unless another processor is at it; what went wrong if it cannot be listed."""
        shown = ingest.printable(name)
        with self._database.exclusive(f"source:{shown}") as held:
            if not held:
                log.debug("%s: another processor is at it", shown)
                return None
            self._progress.state, self._progress.source = ServiceState.SCANNING, shown
            self._progress.moved = time.monotonic()
            scan = SourceScan(self._database, self._ingest, name, self._progress, self._told_to_stop)
            try:
                tally = scan.run()
            except DatabaseUnavailableError:  # an OSError too, but not of the source
                raise
            except FileNotFoundError:
                return None  # gone since it was listed: the next scan retires it
            except OSError as exc:
                return (
                    f"cannot list {shown} ({exc.strerror}), nothing of it is retired: let this user read it"
                )
            finally:
                self._progress.source = None
        self._note(name, tally)
        return None

    def _note(self, name: str, tally: Tally) -> None:
        if tally.complete:
            self._directories[name] = tally.directories
        log.log(logging.INFO if tally.changed else logging.DEBUG, "%s", tally)
        self._news |= tally.changed

    def _retire_absent(self) -> None:
        """Retire the files of sources that are no longer in the ingest folder."""
        for name in self._database.run(store.live_sources, stop=self._told_to_stop):
            if self._is_present(name):
                continue
            with self._database.exclusive(f"source:{name}") as held:
                if held and not self._is_present(name):  # nor did another processor just find it there
                    retire = partial(store.retire_source, name=name)
                    count = self._database.run(retire, stop=self._told_to_stop)
                    log.info("%s: gone from the ingest folder, %d files retired", name, count)

    def _is_present(self, name: str) -> bool:
        """Whether the source is in the folder now; taken for present while the folder cannot be read."""
        try:
            return name in map(ingest.printable, ingest.sources(self._ingest))
        except OSError:
            return True

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
