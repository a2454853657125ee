"""What the routes look at: vital signs and snapshot, each cached, and the health judged from them."""

import time
from collections.abc import Callable
from typing import Any

from services.core.db import Database
from services.core.errors import DatabaseUnavailableError
from services.core.settings import Settings
from services.metrics import collector
from services.metrics.cached import Cached, Reading
from services.metrics.collector import Counts, Known
from services.metrics.health import Health, VitalSigns, judge

VITAL_PERIOD, SNAPSHOT_PERIOD = 1.0, 1.0  # seconds a reading is shared
SNAPSHOT_OVERDUE = 15.0  # seconds; counting millions of contents may take some
COUNTS_PERIOD = 3.0  # seconds; this is what takes long, and it changes slowly
POOL_WAIT = 1.0  # seconds; each of the three readers has a connection


class Observer:
    def __init__(self, settings: Settings) -> None:
        self._born = time.monotonic()
        self.settings = settings
        self.database = Database(
            settings.database(), application="ratchet metrics", max_conn=3, wait_seconds=POOL_WAIT
        )
        self._vital = Cached(lambda: collector.vital_signs(self.database), VITAL_PERIOD)
        self._counts = Cached(
            lambda: collector.counts(self.database, settings.quality_threshold),
            COUNTS_PERIOD,
            patience=SNAPSHOT_OVERDUE,
        )
        self._known = Known(counts=self._counted)
        self._snapshot = Cached(
            lambda: collector.snapshot(self.database, settings.quality_threshold, self._known),
            SNAPSHOT_PERIOD,
            overdue=SNAPSHOT_OVERDUE,
            prepare=self._prepare,
            followed=self._follow,
        )
        self.followed: Callable[[], None] = lambda: None  # called when there is a new snapshot
        self.preparations: dict[str, Callable[[Reading[dict[str, Any]]], object]] = {}

    def _prepare(self, reading: Reading[dict[str, Any]]) -> None:
        """What was asked for of earlier snapshots is made of the new one before anybody asks."""
        for prepare in list(self.preparations.values()):
            prepare(reading)

    def _follow(self) -> None:
        self.followed()

    def _counted(self) -> Counts:
        """Raises DatabaseUnavailableError while they have never been counted."""
        reading = self._counts.read()
        if reading.value is None:
            raise DatabaseUnavailableError(reading.error or "the contents have not been counted yet")
        return reading.value

    def snapshot(self) -> Reading[dict[str, Any]]:
        return self._snapshot.read()

    def health(self) -> Health:
        """Judged now: heartbeats grow older while the reading is shared."""
        reading = self._vital.read()
        signs = (reading.value or VitalSigns(migrated=False)).later(reading.age_seconds or 0.0)
        return judge(signs, error=reading.error, uptime_seconds=time.monotonic() - self._born)

    def not_ready(self) -> str | None:
        """Why requests for data cannot be served; None when they can."""
        reading = self._vital.read()
        if reading.error is not None:
            return reading.error
        if reading.value is None or not reading.value.migrated:
            return "migrations are missing: run `ratchet migrate`"
        return None
