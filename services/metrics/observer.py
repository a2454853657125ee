"""What the routes look at: vital signs and snapshot, each cached, and the health judged from them."""

import time
from typing import Any

from services.core.db import Database
from services.core.settings import Settings
from services.metrics import collector
from services.metrics.cached import Cached, Reading
from services.metrics.collector import VitalSigns
from services.metrics.health import Beat, Health, judge

VITAL_PERIOD, SNAPSHOT_PERIOD = 1.0, 1.5  # seconds a reading is shared
SNAPSHOT_OVERDUE = 15.0  # seconds; counting millions of contents may take several
POOL_WAIT = 1.0  # seconds; each of the two readers has a connection


class Observer:
    def __init__(self, settings: Settings) -> None:
        self._born = time.monotonic()
        self.database = Database(
            settings.database(), application="ratchet metrics", max_conn=2, wait_seconds=POOL_WAIT
        )
        self._vital = Cached(lambda: collector.vital_signs(self.database), VITAL_PERIOD)
        self._snapshot = Cached(
            lambda: collector.snapshot(self.database, settings.quality_threshold),
            SNAPSHOT_PERIOD,
            overdue=SNAPSHOT_OVERDUE,
        )

    def snapshot(self) -> Reading[dict[str, Any]]:
        return self._snapshot.read()

    def health(self) -> Health:
        """Judged now: heartbeats grow older while the reading is shared."""
        reading = self._vital.read()
        signs = reading.value or VitalSigns(migrated=False)
        later = reading.age_seconds or 0.0
        return judge(
            error=reading.error,
            migrated=signs.migrated,
            beats=[_aged(beat, later) for beat in signs.beats],
            uptime_seconds=time.monotonic() - self._born,
        )

    def not_ready(self) -> str | None:
        """Why requests for data cannot be served; None when they can."""
        reading = self._vital.read()
        if reading.error is not None:
            return reading.error
        if reading.value is None or not reading.value.migrated:
            return "migrations are missing: run `ratchet migrate`"
        return None


def _aged(beat: Beat, seconds: float) -> Beat:
    return Beat(
        beat.service, beat.instance, beat.state, beat.detail, beat.age_seconds + seconds, beat.started_at
    )
