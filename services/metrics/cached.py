"""A value read in the background and shared by all requests, with its age: no request ever hangs."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from services.core.errors import RatchetError

log = logging.getLogger(__name__)
Value = TypeVar("Value")

PATIENCE = 2.0  # seconds a request waits for a reading under way
REST = 10  # a reading that took t seconds is good for REST × t: reading takes a tenth of the time at most


@dataclass(frozen=True)
class Reading(Generic[Value]):
    """The newest value there is, however old, and why there is no newer one."""

    value: Value | None
    age_seconds: float | None  # None: never read
    error: str | None = None  # None: as fresh as it should be

    @property
    def is_stale(self) -> bool:
        return self.error is not None


class Cached(Generic[Value]):
    """Runs `load` at most every `period` seconds and never twice at a time; failures count as runs.

    A request waits `patience` seconds for a reading under way; one that takes longer than `overdue`
    seconds is an error, though it may still arrive.
    """

    def __init__(
        self,
        load: Callable[[], Value],
        period: float,
        patience: float = PATIENCE,
        overdue: float = PATIENCE,
    ) -> None:
        self._load = load
        self._period = period
        self._patience = patience
        self._overdue = overdue
        self._changed = threading.Condition()
        self._value: Value | None = None
        self._error: str | None = None
        self._read_at: float | None = None  # when the value's reading began, monotonic seconds
        self._due_at = 0.0
        self._started_at: float | None = None  # of the reading under way

    def read(self) -> Reading[Value]:
        """The value, read anew when due; waits for that at most `patience` seconds since it began."""
        with self._changed:
            if self._started_at is None and time.monotonic() >= self._due_at:
                self._started_at = time.monotonic()
                threading.Thread(target=self._refresh, daemon=True, name="refresh").start()
            if (started := self._started_at) is not None:
                left = started + self._patience - time.monotonic()
                self._changed.wait_for(lambda: self._started_at != started, timeout=max(0.0, left))
            return self._reading()

    def _reading(self) -> Reading[Value]:
        now = time.monotonic()
        error = self._error
        if self._started_at is not None and error is None:
            lasted = now - self._started_at
            if lasted >= (self._overdue if self._read_at is not None else self._patience):
                error = f"no answer from PostgreSQL for {lasted:.0f} s"
        return Reading(self._value, None if self._read_at is None else now - self._read_at, error)

    def _refresh(self) -> None:
        started = time.monotonic()
        value, error = None, None
        try:
            value = self._load()
        except RatchetError as exc:
            error = str(exc)
        except Exception as exc:
            log.exception("reading the database failed")
            error = f"reading the database failed: {type(exc).__name__}; the log of metrics says more"
        with self._changed:
            now = time.monotonic()
            if error is None:
                self._value, self._read_at = value, started
            if error != self._error:
                log.log(logging.WARNING if error else logging.INFO, "%s", error or "the database answers")
            self._error = error
            self._due_at = now + max(self._period, REST * (now - started) if error is None else 0.0)
            self._started_at = None
            self._changed.notify_all()
