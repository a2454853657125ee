"""Which Content-Type each kind of reader gets, exactly: Prometheus 3 refuses one it does not know."""

from flask.testing import FlaskClient

from tests.integration.metrics.test_app import client
from tests.unit.metrics.test_negotiation import (
    CHROME,
    FIREFOX,
    PROMETHEUS_2,
    PROMETHEUS_3,
    PROMETHEUS_PROTOBUF,
)

__all__ = ["client"]  # a fixture

JSON = "application/json"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
VICTORIA = "text/plain;version=0.0.4;q=1,*/*;q=0.1"
TELEGRAF = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
READERS: tuple[tuple[str | None, str], ...] = (
    (PROMETHEUS_2, f"{OPENMETRICS}; escaping=underscores"),
    (PROMETHEUS_3, f"{OPENMETRICS}; escaping=allow-utf-8"),
    (PROMETHEUS_PROTOBUF, f"{OPENMETRICS}; escaping=underscores"),  # protobuf is not spoken here
    (TELEGRAF, f"{OPENMETRICS}; escaping=underscores"),
    ("application/openmetrics-text", OPENMETRICS),
    (VICTORIA, TEXT),
    ("text/plain", TEXT),
    ("application/vnd.google.protobuf", TEXT),
    ("text/plain;version=nonsense", TEXT),
    (None, JSON),
    ("*/*", JSON),  # curl
    ("application/json, text/plain, */*", JSON),  # axios
    (FIREFOX, JSON),
    (CHROME, JSON),
)


def test_fourteen_readers_of_metrics(client: FlaskClient) -> None:
    """Text for who names one of its types, JSON for all others; caches learn that Accept matters."""
    for accept, expected in READERS:
        answer = client.get("/metrics", headers={} if accept is None else {"Accept": accept})
        assert (accept, answer.headers["Content-Type"]) == (accept, expected)
        assert "Accept" in answer.vary
    assert len(READERS) == 14


def test_fourteen_readers_of_health(client: FlaskClient) -> None:
    """Health is JSON to everybody."""
    for path in ("/health", "/health/live", "/health/ready"):
        for accept, _ in READERS:
            answer = client.get(path, headers={} if accept is None else {"Accept": accept})
            assert answer.headers["Content-Type"] == JSON
