"""One reading for all requests, and no request that hangs."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest

from services.core.errors import DatabaseUnavailableError
from services.metrics.cached import Cached
from tests.integration.metrics.server import wait_until


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
    deadline = time.monotonic() + 60
    while (second := cached.read().value) == first and time.monotonic() < deadline:
        pass
    assert (first, second) == (1, 2)


def test_a_hanging_database_holds_no_request() -> None:
    """The first waits for no more than the patience, with an error; later ones for nothing."""
    released = threading.Event()
    cached = Cached(released.wait, period=0, patience=0.2, overdue=0.2)
    with patch.object(cached._changed, "wait_for", wraps=cached._changed.wait_for) as waiting:
        readings = [cached.read() for _ in range(50)]
    released.set()
    first, *later = (call.kwargs["timeout"] for call in waiting.call_args_list)
    assert (0 < first <= 0.2, set(later)) == (True, {0.0})
    assert all(reading.is_stale and reading.value is None for reading in readings)


def test_a_failure_keeps_the_last_value_and_names_the_error() -> None:
    """Old figures stay, never shown as fresh."""
    runs = itertools.count()
    cached = Cached(lambda: 7 if next(runs) == 0 else _fail(), period=0)
    cached.read()
    deadline = time.monotonic() + 60
    while not (reading := cached.read()).is_stale and time.monotonic() < deadline:
        pass
    assert reading.value == 7
    assert reading.error == "PostgreSQL is away"
    assert reading.age_seconds is not None


def test_only_the_first_request_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Afterwards it is read in the background, as often as it says, and whoever asks gets the newest."""
    monkeypatch.setattr("services.metrics.cached.REST", 0)
    calls, may_end = [], threading.Event()
    may_end.set()
    cached = Cached(lambda: may_end.wait() and (calls.append(1) or len(calls)), period=0.01, overdue=60)
    assert cached.read().value == 1
    wait_until(lambda: cached.read().value > 2)
    may_end.clear()
    seen = len(calls)
    assert cached.read().value in (seen, seen + 1)
    assert not cached.read().is_stale
    may_end.set()


def test_nobody_asks_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A while after the last request the reading ends; the next request begins it again."""
    monkeypatch.setattr("services.metrics.cached.LINGER", 0.05)
    cached = Cached(lambda: 1, period=0.01)
    cached.read()
    wait_until(lambda: not cached._reads_on)
    assert cached.read().value == 1


def test_what_is_made_of_a_value_is_made_once() -> None:
    """Before anybody asks where it is prepared; and anew of the next value."""
    made: list[int] = []
    cached = Cached(lambda: 7, period=60, prepare=lambda reading: reading.once("twice", lambda: 14))
    first = cached.read()
    assert first.once("twice", lambda: made.append(1)) == 14
    assert first.once("half", lambda: made.append(2) or 3.5) == cached.read().once("half", lambda: 0) == 3.5
    assert made == [2]


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
