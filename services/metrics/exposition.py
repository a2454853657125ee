"""The Prometheus view: samples made from the same snapshot and health as the JSON.

Counters are counts of rows that are never deleted and sums of figures that never change, so they do not
fall when a process restarts. No label names a file or a round: their number is without bound. While the
snapshot is stale its samples are left out, so that Prometheus marks their series stale; `ratchet_up`
says why.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from services.metrics.cached import Reading
from services.metrics.families import SECTIONS
from services.metrics.families.family import Family, View
from services.metrics.health import Health
from services.metrics.requests_served import RequestsServed

Encode = Callable[[CollectorRegistry], bytes]

FAMILIES = [family for section in SECTIONS for family in section.families]
END = b"# EOF\n"  # of OpenMetrics, and of no other text


def expose(
    reading: Reading[dict[str, Any]], health: Health, accept: str | None, served: RequestsServed | None = None
) -> tuple[bytes, str]:
    """The metrics and their Content-Type, in the text format that an Accept header asks for."""
    try:
        encode, content_type = choose_encoder(accept or "")
    except TypeError:  # a version that is no version
        encode, content_type = choose_encoder("")
    view = View(health, reading.age_seconds, None if reading.is_stale else reading.value, served)
    body = _encode(encode, view, [family for family in FAMILIES if family.always])
    if view.snapshot is not None:  # what it alone decides is encoded once for all, until there is a newer one
        rest = [family for family in FAMILIES if not family.always]
        body = body.removesuffix(END) + reading.once(content_type, lambda: _encode(encode, view, rest))
    return body, content_type


def _encode(encode: Encode, view: View, families: list[Family]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ViewCollector(view, families))
    return encode(registry)


class ViewCollector(Collector):
    def __init__(self, view: View, families: Iterable[Family]) -> None:
        self._view = view
        self._families = families

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        return (family.metric(self._view) for family in self._families)
