"""The threads of a processor that take chunks and work them off, each with a judge process of its own.

A thread mostly waits, for its judge or for PostgreSQL: one process has enough of Python for several.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from services.core.errors import DatabaseUnavailableError
from services.processor.judging import JudgeNotReadyError
from services.processor.pipeline import Pipeline
from services.processor.progress import Progress

log = logging.getLogger(__name__)

LOOK_INTERVAL = 1.0  # seconds between two looks for chunks that other processors queued
REST_AFTER = 60.0  # seconds without a chunk after which the judge process is let go
RETRY_INTERVAL = 2.0  # seconds until the next try when the database is away
MOST_WORKERS = 16  # threads; more chunks at once are a matter for more processors
CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class Crew:
    """Works from `start` to `join`, which waits until `stop()` has been seen by all."""

    def __init__(
        self, make: Callable[[], Pipeline], count: int, progress: Progress, stop: Callable[[], bool]
    ) -> None:
        self._make = make
        self._progress = progress
        self._stop = stop
        self._threads = [
            threading.Thread(target=self._run, name=f"worker {number}", daemon=True)
            for number in range(1, count + 1)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        self._progress.queue()  # wakes them
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        pipeline = self._make()
        worked = time.monotonic()
        try:
            while not self._stop():
                seen = self._progress.queued
                if self._work(pipeline):
                    worked = time.monotonic()
                    continue
                if time.monotonic() - worked > REST_AFTER:
                    pipeline.close()
                self._progress.await_chunk(seen, LOOK_INTERVAL)
        finally:
            pipeline.close()

    def _work(self, pipeline: Pipeline) -> bool:
        try:
            outcome = pipeline.take_one()
        except (DatabaseUnavailableError, JudgeNotReadyError) as exc:
            if not self._stop():
                log.warning("a chunk is left for later: %s", exc)
                self._progress.trouble = str(exc) if isinstance(exc, JudgeNotReadyError) else None
                self._progress.await_chunk(self._progress.queued, RETRY_INTERVAL)
            return False
        self._progress.trouble = None
        if outcome is not None:
            self._progress.note(outcome)
        return outcome is not None


def size(wanted: int) -> int:
    """So many workers; for 0 one for each core this process may use."""
    if wanted:
        return wanted
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, _quota(CGROUP_QUOTA), MOST_WORKERS))


def _quota(path: Path) -> int:
    """The cores that the control group allows, rounded up; many when it sets no limit."""
    try:
        allowed, period = path.read_text(encoding="ascii").split()
        return -(-int(allowed) // int(period))
    except (OSError, ValueError):  # not there, or `max`
        return MOST_WORKERS
