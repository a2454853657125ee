"""The Prometheus view: samples made from the same snapshot and health as the JSON.

Counters are counts of rows that are never deleted and sums of figures that never change, so they do not
fall when a process restarts. No label names a file or a round: their number is without bound. While the
snapshot is stale its samples are left out, so that Prometheus marks their series stale; `ratchet_up`
says why.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
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
FRESH = 2.0  # seconds a text is given to all who ask; with every snapshot, once a second, it is made anew


class Exposition:
    """The text of each format that is asked for, encoded once for all who scrape at the same moment."""

    def __init__(self, served: RequestsServed) -> None:
        self._served = served
        self._texts: dict[str, tuple[float, bool, bytes]] = {}  # Content-Type → when, if stale, text

    def __call__(
        self, reading: Reading[dict[str, Any]], health: Health, accept: str | None
    ) -> tuple[bytes, str]:
        """As `expose`, at most FRESH seconds old."""
        _, content_type = _encoder(accept or "")
        text = self.known(reading, content_type)
        return self.anew(reading, health, accept) if text is None else (text, content_type)

    def known(self, reading: Reading[dict[str, Any]], content_type: str) -> bytes | None:
        """What was encoded less than FRESH seconds ago, and of a reading as well or stale as this one."""
        made_at, was_stale, text = self._texts.get(content_type, (-FRESH, False, b""))
        is_good = time.monotonic() - made_at < FRESH and was_stale == reading.is_stale
        return text if is_good else None

    def anew(self, reading: Reading[dict[str, Any]], health: Health, accept: str | None) -> tuple[bytes, str]:
        text, content_type = expose(reading, health, accept, self._served)
        self._texts[content_type] = time.monotonic(), reading.is_stale, text
        return text, content_type


def expose(
    reading: Reading[dict[str, Any]], health: Health, accept: str | None, served: RequestsServed | None = None
) -> tuple[bytes, str]:
    """The metrics and their Content-Type, in the text format that an Accept header asks for."""
    encode, content_type = _encoder(accept or "")
    view = View(health, reading.age_seconds, None if reading.is_stale else reading.value, served)
    families = [family for family in FAMILIES if family.always or view.snapshot is not None]
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ViewCollector(view, families))
    return encode(registry), content_type


@lru_cache(maxsize=64)
def _encoder(accept: str) -> tuple[Encode, str]:
    try:
        return choose_encoder(accept)
    except TypeError:  # a version that is no version
        return choose_encoder("")


class ViewCollector(Collector):
    def __init__(self, view: View, families: Iterable[Family]) -> None:
        self._view = view
        self._families = families

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        return (family.metric(self._view) for family in self._families)
