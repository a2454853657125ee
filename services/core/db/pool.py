"""A pool of connections that waits for one that is out and replaces one that died."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg2
import tenacity

from services.core.db.connection import LOST, connect, lives, lost, rolled_back
from services.core.db.transaction import Transaction
from services.core.errors import DatabaseUnavailableError
from services.core.target import Target

log = logging.getLogger(__name__)
Result = TypeVar("Result")

CHECK_AFTER = 1.0  # seconds a connection may lie idle before it is asked whether it still lives
WAIT_FOR_CONNECTION = 30.0  # seconds a caller waits for a free connection
BACKOFF_FIRST, BACKOFF_MAX = 0.5, 30.0  # seconds


class Database:
    """A thread-safe pool of connections: waits when all are out, replaces those that died."""

    def __init__(
        self,
        target: Target,
        *,
        application: str = "ratchet",
        min_conn: int = 1,
        max_conn: int = 5,
        wait_seconds: float = WAIT_FOR_CONNECTION,
    ) -> None:
        if not 0 <= min_conn <= max_conn:
            raise ValueError(f"min_conn={min_conn} must lie between 0 and max_conn={max_conn}")
        self.target = target
        self._application = application
        self._min_conn = min_conn
        self._wait_seconds = wait_seconds
        self._slots = threading.Semaphore(max_conn)
        self._idle: list[tuple[Any, float]] = []  # connection, when it came back (monotonic seconds)
        self._lock = threading.Lock()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commit at the end, roll back on any error.

        Raises DatabaseUnavailableError when no connection is to be had, or it breaks meanwhile.
        """
        connection = self._take()
        healthy = False
        try:
            with connection.cursor() as cursor:
                yield Transaction(cursor)
            connection.commit()
            healthy = True
        except LOST as exc:
            raise lost(self.target, exc) from exc
        finally:
            if not healthy:
                healthy = rolled_back(connection)
            self._give_back(connection, healthy)

    def run(
        self,
        work: Callable[[Transaction], Result],
        *,
        give_up_after: float | None = None,
        stop: Callable[[], object] = lambda: False,
    ) -> Result:
        """`work` in a transaction, again with exponential backoff while the database is away.

        `work` may run more than once: it must be safe to repeat. Gives up, with the last
        DatabaseUnavailableError, after `give_up_after` seconds or once `stop()` is true.
        """
        stop_after = float("inf") if give_up_after is None else give_up_after
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(DatabaseUnavailableError),
            wait=tenacity.wait_exponential(multiplier=BACKOFF_FIRST, max=BACKOFF_MAX),
            stop=lambda state: bool(stop()) or (state.seconds_since_start or 0.0) >= stop_after,
            before_sleep=_log_retry,
            sleep=lambda seconds: _sleep_until(stop, seconds),
            reraise=True,
        )
        for attempt in retrying:
            with attempt, self.transaction() as transaction:
                return work(transaction)
        raise AssertionError("tenacity ended without a result")

    @contextmanager
    def exclusive(self, name: str) -> Iterator[bool]:
        """Hold the advisory lock of this name, on a connection of its own; false if another does."""
        connection = self._take()
        held = broken = False
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (name,))
                held = bool(cursor.fetchone()[0])
            yield held
        except LOST as exc:
            broken = True
            raise lost(self.target, exc) from exc
        finally:
            try:
                if held and not broken:
                    with connection.cursor() as cursor:
                        cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", (name,))
                connection.autocommit = False
            except psycopg2.Error:
                broken = True
            self._give_back(connection, not broken)

    def close(self) -> None:
        with self._lock:
            connections, self._idle = self._idle, []
        for connection, _ in connections:
            connection.close()

    def _take(self) -> Any:
        if not self._slots.acquire(timeout=self._wait_seconds):
            raise DatabaseUnavailableError(
                f"no connection to {self.target} became free in {self._wait_seconds:g} s:"
                " raise DB_POOL_MAX_CONN or look for a transaction that does not end"
            )
        try:
            while True:
                with self._lock:
                    if not self._idle:
                        break
                    connection, since = self._idle.pop()
                if time.monotonic() - since < CHECK_AFTER or lives(connection):
                    return connection
                connection.close()
            return connect(self.target, self._application)
        except BaseException:
            self._slots.release()
            raise

    def _give_back(self, connection: Any, healthy: bool) -> None:
        if healthy and not connection.closed:
            with self._lock:
                self._idle.append((connection, time.monotonic()))
                surplus = [self._idle.pop(0)] if len(self._idle) > max(self._min_conn, 1) else []
            for old, _ in surplus:
                old.close()
        else:
            connection.close()
        self._slots.release()


def _sleep_until(stop: Callable[[], object], seconds: float) -> None:
    """Sleep for so long, or until `stop()` is true: a service must end soon after its signal."""
    end = time.monotonic() + seconds
    while not stop() and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.2))


def _log_retry(state: tenacity.RetryCallState) -> None:
    wait = state.next_action.sleep if state.next_action else 0.0
    error = state.outcome.exception() if state.outcome else None
    log.warning("%s; try %d again in %.1f s", error, state.attempt_number + 1, wait)
