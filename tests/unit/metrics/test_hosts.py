"""By which names the service may be asked for."""

import pytest

from services.metrics.hosts import is_open, is_trusted

NAMES = {"localhost", "metrics", "ratchet.example.org", ".inside.example"}


@pytest.mark.parametrize(
    "host",
    [
        "localhost:8090", "LOCALHOST", "localhost.", "a.localhost:1", "metrics:8090", "127.0.0.1:8090",
        "10.42.0.7:8090", "[::1]:8090", "[fe80::1]", "ratchet.example.org", "a.inside.example:443",
    ],
)  # fmt: skip
def test_its_own_names_and_addresses_in_figures_are_known(host: str) -> None:
    assert is_trusted(host, NAMES)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8090", "localhost.evil.example", "127.0.0.1.evil.example", "",
        "xlocalhost", "inside.example", "1270.0.1", "metrics.evil:8090", "x:y:8090",
    ],
)  # fmt: skip
def test_any_other_is_not(host: str) -> None:
    """Nor one that begins or ends as one of them does."""
    assert not is_trusted(host, NAMES)


def test_a_star_is_any() -> None:
    assert is_trusted("evil.example", {"*"})


@pytest.mark.parametrize(("path", "expected"), [
    ("/health", True), ("/health/live", True), ("/metrics", True), ("/", False), ("/healthy", False),
    ("/api/v1/state", False), ("//health", False), ("/metrics/x", True),
])  # fmt: skip
def test_probes_and_scrapers_may_use_any(path: str, expected: bool) -> None:
    assert is_open(path) == expected
