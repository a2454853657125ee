"""One reading for all requests, and no request that hangs."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from services.core.errors import DatabaseUnavailableError
from services.metrics.cached import Cached


def test_a_thousand_requests_share_one_reading() -> None:
    """Within the period the database is asked once."""
    calls: list[int] = []
    cached = Cached(lambda: calls.append(1) or len(calls), period=60)
    with ThreadPoolExecutor(16) as pool:
        values = {reading.value for reading in pool.map(lambda _: cached.read(), range(1000))}
    assert values == {1}


def test_it_reads_again_when_due() -> None:
    """After the period the next request gets a new value."""
    calls: list[int] = []
    cached = Cached(lambda: calls.append(1) or len(calls), period=0.0)
    first = cached.read().value
    deadline = time.monotonic() + 5
    while (second := cached.read().value) == first and time.monotonic() < deadline:
        pass
    assert (first, second) == (1, 2)


def test_a_hanging_database_holds_no_request() -> None:
    """Each request returns within the patience, with an error; later ones at once."""
    released = threading.Event()
    cached = Cached(released.wait, period=0, patience=0.2, overdue=0.2)
    started = time.monotonic()
    readings = [cached.read() for _ in range(50)]
    took = time.monotonic() - started
    released.set()
    assert took < 1
    assert all(reading.is_stale and reading.value is None for reading in readings)


def test_a_failure_keeps_the_last_value_and_names_the_error() -> None:
    """Old figures stay, never shown as fresh."""
    runs = itertools.count()
    cached = Cached(lambda: 7 if next(runs) == 0 else _fail(), period=0)
    cached.read()
    deadline = time.monotonic() + 5
    while not (reading := cached.read()).is_stale and time.monotonic() < deadline:
        pass
    assert reading.value == 7
    assert reading.error == "PostgreSQL is away"
    assert reading.age_seconds is not None


def test_an_unforeseen_error_is_named_but_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    """The reader learns the kind, the log the traceback."""

    def broken() -> int:
        raise KeyError("secret")

    reading = Cached(broken, period=60).read()
    assert reading.error is not None
    assert "KeyError" in reading.error
    assert "secret" not in reading.error
    assert "Traceback" in caplog.text


def _fail() -> int:
    raise DatabaseUnavailableError("PostgreSQL is away")
