"""Requests are counted by the part of the service they are for, whatever path was asked for."""

import pytest
from flask import Flask, abort

from services.metrics.requests_served import BOUNDS, RequestsServed, watch


def test_a_histogram_of_requests_adds_up() -> None:
    """Each bucket holds all that are faster; what is on a bound is below it."""
    served = RequestsServed()
    for seconds in (0.0005, BOUNDS[0], 0.02, 99.0):
        served.note("page", 200, seconds)
    served.note("api", 404, 0.3)
    (api, _, _), (page_, below, total) = served.read()
    assert (api, page_) == (("api", "4xx"), ("page", "2xx"))
    assert [number for _, number in below] == [2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4]
    assert below[-1][0] == "+Inf"
    assert total == pytest.approx(99.0215)


@pytest.mark.parametrize(
    ("path", "handler", "status"),
    [
        ("/metrics", "metrics", "2xx"),
        ("/health/ready", "health", "5xx"),
        ("/api/v1/rounds/demo/7", "api", "2xx"),
        ("/", "page", "2xx"),
        ("/rounds/demo/7", "page", "2xx"),
        ("/no/such/page", "none", "4xx"),
    ],
)
def test_a_path_is_counted_under_its_part(path: str, handler: str, status: str) -> None:
    """Never under itself: paths are without number."""
    app = Flask(__name__)
    served = watch(app)
    for number, rule in enumerate(
        ("/", "/metrics", "/api/v1/rounds/<track>/<int:number>", "/rounds/<track>/<int:number>")
    ):
        app.add_url_rule(rule, f"view{number}", lambda **_: "text")
    app.add_url_rule("/health/ready", "ready", lambda: abort(503))
    app.test_client().get(path)
    ((labels, _, seconds),) = served.read()
    assert labels == (handler, status)
    assert 0 < seconds < 10
