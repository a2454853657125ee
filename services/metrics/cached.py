"""A value that is read in the background while somebody asks for it: no request waits for it, or hangs."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from services.core.errors import RatchetError

log = logging.getLogger(__name__)
Value = TypeVar("Value")
Result = TypeVar("Result")

PATIENCE = 2.0  # seconds a request waits for the first reading
REST = 10  # after a reading that took t seconds the next waits REST × t: it takes a tenth of the time
BREATH = 0.01  # seconds between two readings, however short
LINGER = 90.0  # seconds after the last request in which it is read on: Prometheus asks once a minute
LINGER_IN_TROUBLE = 5.0  # the same while it cannot be read


@dataclass(frozen=True)
class Reading(Generic[Value]):
    """The newest value there is, however old, and why there is no newer one."""

    value: Value | None
    age_seconds: float | None  # None: never read
    error: str | None = None  # None: as fresh as it should be
    made: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_stale(self) -> bool:
        return self.error is not None

    def once(self, name: str, make: Callable[[], Result]) -> Result:
        """What is made of this value, as its JSON, made once for all who ask until there is a newer value."""
        if name not in self.made:
            self.made[name] = make()
        return cast(Result, self.made[name])


class Cached(Generic[Value]):
    """Runs `load` every `period` seconds while it is asked for, never twice at a time; failures count.

    A request waits, `patience` seconds at most, only when nobody had asked for a while; a reading that takes
    longer than `overdue` seconds is an error, though it may still arrive.
    """

    def __init__(
        self,
        load: Callable[[], Value],
        period: float,
        patience: float = PATIENCE,
        overdue: float = PATIENCE,
        prepare: Callable[[Reading[Value]], None] = lambda _reading: None,
        followed: Callable[[], None] = lambda: None,
    ) -> None:
        """prepare: makes what will be asked for (`Reading.once`) of a new value, before anybody sees it.

        followed: called in the background when there is a new value; it raises nothing.
        """
        self._load = load
        self._period = period
        self._patience = patience
        self._overdue = overdue
        self._prepare = prepare
        self._followed = followed
        self._changed = threading.Condition()
        self._value: Value | None = None
        self._made: dict[str, Any] = {}
        self._error: str | None = None
        self._read_at: float | None = None  # when the value's reading began, monotonic seconds
        self._started_at: float | None = None  # of the reading under way
        self._asked_at = 0.0
        self._reads_on = False  # a thread is at it
        self._awaited = False  # by requests: the first reading after a while

    def read(self) -> Reading[Value]:
        """The newest value. Waits for one at most `patience` seconds, if nobody had asked for a while."""
        with self._changed:
            self._asked_at = now = time.monotonic()
            if not self._reads_on:
                self._reads_on = self._awaited = True
                self._started_at = now
                threading.Thread(target=self._read_on, daemon=True, name="refresh").start()
            if self._awaited:
                started = self._started_at or now
                left = started + self._patience - now
                self._changed.wait_for(lambda: not self._awaited, timeout=max(0.0, left))
            return self._reading()

    def _reading(self) -> Reading[Value]:
        now = time.monotonic()
        error = self._error
        if self._started_at is not None and error is None:
            lasted = now - self._started_at
            if lasted >= (self._overdue if self._read_at is not None else self._patience):
                error = f"no answer from PostgreSQL for {lasted:.0f} s"
        age = None if self._read_at is None else now - self._read_at
        return Reading(self._value, age, error, self._made)

    def _read_on(self) -> None:
        """Until nobody has asked for a while."""
        while True:
            took = self._refresh()
            is_well = self._error is None
            if is_well:
                self._followed()
            rest = max(self._period, BREATH, REST * took if is_well else 0.0)
            time.sleep(rest)
            linger = max(rest, LINGER if is_well else LINGER_IN_TROUBLE)
            with self._changed:
                if time.monotonic() - self._asked_at > linger:
                    self._reads_on = False
                    return
                self._started_at = time.monotonic()

    def _refresh(self) -> float:
        """One reading; how long it took, in seconds."""
        started = time.monotonic()
        value, made, error = None, dict[str, Any](), None
        try:
            value = self._load()
            self._prepare(Reading(value, 0.0, None, made))
        except RatchetError as exc:
            error = str(exc)
        except Exception as exc:
            log.exception("reading the database failed")
            error = f"reading the database failed: {type(exc).__name__}; the log of metrics says more"
        with self._changed:
            if error is None:
                self._value, self._made, self._read_at = value, made, started
            if error != self._error:
                log.log(logging.WARNING if error else logging.INFO, "%s", error or "the database answers")
            self._error = error
            self._started_at, self._awaited = None, False
            self._changed.notify_all()
        return time.monotonic() - started
