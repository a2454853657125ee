"""Which Accept headers get which format."""

import pytest

from services.metrics.negotiation import Format, choose

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_PROTOBUF = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
    "application/openmetrics-text;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
FIREFOX = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
CHROME = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
    "application/signed-exchange;v=b3;q=0.7"
)


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (PROMETHEUS_2, Format.PROMETHEUS),
        (PROMETHEUS_3, Format.PROMETHEUS),
        (PROMETHEUS_PROTOBUF, Format.PROMETHEUS),
        ("text/plain;version=0.0.4;q=1,*/*;q=0.1", Format.PROMETHEUS),
        ("text/plain", Format.PROMETHEUS),
        ("Text/Plain; charset=utf-8", Format.PROMETHEUS),
        ("application/openmetrics-text", Format.PROMETHEUS),
        ("application/vnd.google.protobuf", Format.PROMETHEUS),
        ("application/json;q=0.1, text/plain", Format.PROMETHEUS),
        (None, Format.JSON),
        ("", Format.JSON),
        ("*/*", Format.JSON),
        ("application/json", Format.JSON),
        ("application/*", Format.JSON),
        ("application/json, text/plain, */*", Format.JSON),  # axios
        (FIREFOX, Format.JSON),
        (CHROME, Format.JSON),
        ("text/html, text/plain;q=0.8, */*;q=0.01", Format.JSON),  # lynx
        ("text/plain;q=0, */*", Format.JSON),
        ("image/png", Format.JSON),
        ("no header at all;;q=x,,", Format.JSON),
    ],
)
def test_accept_decides(accept: str | None, wanted: Format) -> None:
    """Text for a header that names one of Prometheus' types, JSON for every other."""
    assert choose(accept) is wanted
