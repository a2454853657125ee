"""What a family of metrics is: its name, type and labels, what it means, and where its samples come from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from services.core.models import HEARTBEAT_STALE, Json
from services.metrics.document import is_figure
from services.metrics.health import Health
from services.metrics.requests_served import RequestsServed

PREFIX = "ratchet_"
Samples = Iterable[tuple[Sequence[str], Any]]  # values of the labels, and a number; what is none is left out


@dataclass(frozen=True)
class View:
    """All that metrics are made from, at one instant."""

    health: Health
    age_seconds: float | None = None  # of the snapshot; None: never read
    snapshot: Json | None = None  # None: never read, or stale
    served: RequestsServed | None = None


@dataclass(frozen=True)
class Buckets:
    """A histogram under one set of labels."""

    below: Sequence[tuple[str, float]]  # upper bound, how many up to it; the last is +Inf
    total: float  # sum of what was observed


@dataclass(frozen=True)
class Family:
    """One family. `samples` is asked with a whole snapshot, or at any time where `always`."""

    name: str  # without prefix, a counter's without _total
    kind: Literal["gauge", "counter", "histogram"]
    text: str
    samples: Callable[[View], Samples]
    labels: tuple[str, ...] = ()
    always: bool = False

    @property
    def full_name(self) -> str:
        """As it stands in a query: a histogram's is that of its _bucket, _sum and _count."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"

    def metric(self, view: View) -> Metric:
        """The samples of this instant."""
        name, labels = f"{PREFIX}{self.name}", list(self.labels)
        if self.kind == "histogram":
            return _histogram(HistogramMetricFamily(name, self.text, labels=labels), self.samples(view))
        family = (GaugeMetricFamily if self.kind == "gauge" else CounterMetricFamily)(
            name, self.text, labels=labels
        )
        for values, figure in self.samples(view):
            if is_figure(figure):
                family.add_metric(values, float(figure))
        return family


def _histogram(family: HistogramMetricFamily, samples: Samples) -> Metric:
    for values, found in samples:
        family.add_metric(values, list(found.below), found.total)
    return family


@dataclass(frozen=True)
class Section:
    """Families that belong together, under one heading of docs/reference/metrics.md."""

    title: str
    families: tuple[Family, ...]


def of(*keys: str) -> Callable[[View], Samples]:
    """The one figure of the snapshot at this path, without labels."""

    def samples(view: View) -> Samples:
        found: Any = view.snapshot
        for key in keys:
            found = found[key]
        yield (), found

    return samples


def each(
    rows: Callable[[Json], Iterable[Json]], labels: Sequence[str], key: str
) -> Callable[[View], Samples]:
    """A figure of each row: `labels` and `key` are its fields."""
    return lambda view: (
        ([str(row[label]) for label in labels], row[key]) for row in rows(view.snapshot or {})
    )


def heard(snapshot: Json, service: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Track ('' of a processor) and detail of the newest heartbeat of each track that is not old."""
    seen = set()
    for row in snapshot["services"]:  # newest first
        if row["service"] != service or row["age_seconds"] > HEARTBEAT_STALE:
            continue
        detail = row["detail"] if isinstance(row["detail"], dict) else {}
        track = str(detail.get("track") or "")
        if track not in seen:
            seen.add(track)
            yield track, detail
