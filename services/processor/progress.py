"""What this processor has done since it started: written by walk and pipeline, read by the heartbeat."""

import threading
import time

from services.core.models import Json, ServiceState
from services.processor.values import Outcome


class Progress:
    def __init__(self) -> None:
        self.state = ServiceState.IDLE
        self.source: str | None = None  # that is being walked
        self.message: str | None = None
        self.trouble: str | None = None  # why no chunk can be worked off
        self.files_seen = 0
        self.stored = 0
        self.rejected = 0
        self.files_per_s = 0.0  # judged, in the scan now running or the last one
        self.moved = time.monotonic()  # when the last chunk was done, monotonic seconds
        self._scan_began = self.moved
        self._seen_before = 0
        self._outcomes: dict[int, Outcome] = {}  # by source
        self._chunks = threading.Condition()
        self._queued = 0  # chunks, ever

    def begin(self, source: str) -> None:
        """A scan of this source begins."""
        self.state, self.source = ServiceState.SCANNING, source
        self._scan_began = self.moved = time.monotonic()
        self._seen_before = self.files_seen

    def note(self, outcome: Outcome) -> None:
        """A chunk is done."""
        with self._chunks:
            self._outcomes.setdefault(outcome.source_id, Outcome(outcome.source_id)).add(outcome)
            self.files_seen += outcome.files
            self.stored += outcome.stored
            self.rejected += outcome.rejected.total()
            self.moved = time.monotonic()
            elapsed = max(self.moved - self._scan_began, 1e-6)
            self.files_per_s = (self.files_seen - self._seen_before) / elapsed

    def take_outcome(self, source_id: int) -> Outcome:
        """What was done of a source since it was last asked."""
        with self._chunks:
            return self._outcomes.pop(source_id, Outcome(source_id))

    def queue(self) -> None:
        """There is a chunk to take."""
        with self._chunks:
            self._queued += 1
            self._chunks.notify_all()

    @property
    def queued(self) -> int:
        return self._queued

    def await_chunk(self, seen: int, seconds: float) -> None:
        """Return once a chunk was queued after `queued` was `seen`, or after so many seconds."""
        with self._chunks:
            self._chunks.wait_for(lambda: self._queued != seen, seconds)

    def detail(self) -> Json:
        return {
            "source": self.source,
            "files_seen": self.files_seen,
            "stored": self.stored,
            "rejected": self.rejected,
            "files_per_s": round(self.files_per_s, 1),
            "message": self.trouble or self.message,
        }
