"""The Prometheus view: samples made from the same snapshot and health as the JSON.

Counters are sums over rows that are never deleted, so they do not fall when a process restarts.
No label names a file or a round: their number is without bound. While the snapshot is stale its
samples are left out, so that Prometheus marks their series stale; `ratchet_up` says why.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily as Counter
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from services.core.models import Json, RoundState, Service, ServiceState, Subject
from services.metrics.cached import Reading
from services.metrics.document import is_figure
from services.metrics.health import Health, Status

Samples = Iterable[tuple[list[str], Any]]


def expose(reading: Reading[dict[str, Any]], health: Health, accept: str | None) -> tuple[bytes, str]:
    """The metrics and their Content-Type, in the text format that an Accept header asks for."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SnapshotCollector(reading, health))
    try:
        encode, content_type = choose_encoder(accept or "")
    except TypeError:  # a version that is no version
        encode, content_type = choose_encoder("")
    return encode(registry), content_type


class SnapshotCollector(Collector):
    def __init__(self, reading: Reading[dict[str, Any]], health: Health) -> None:
        self._reading = reading
        self._health = health

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield from _health(self._health)
        age = self._reading.age_seconds
        yield _gauge("snapshot_age_seconds", "Age of what the database told", [], [([], age)])
        if self._reading.value is None or self._reading.is_stale:
            return
        value = self._reading.value
        yield from _ingest(value["ingest"])
        yield from _tracks(value["tracks"])
        yield from _last_verdicts(value["rounds"])
        yield from _running(value["running_round"])


def _health(health: Health) -> Iterator[Metric]:
    parts = health.parts
    yield _gauge(
        "up",
        "1 when this part is well, or starting",
        ["part"],
        (([name], part.status in (Status.OK, Status.STARTING)) for name, part in parts.items()),
    )
    services = [(service, parts[service]) for service in Service if service in parts]
    known = [(service, part) for service, part in services if part.state is not None]
    yield _gauge(
        "heartbeat_age_seconds",
        "Time since the last sign of life of a service",
        ["service"],
        (([service], part.beat_age_seconds) for service, part in known),
    )
    yield _gauge(
        "service_state",
        "1 for the state a service is in",
        ["service", "state"],
        (([service, state], part.state == state) for service, part in known for state in ServiceState),
    )


def _ingest(ingest: Json) -> Iterator[Metric]:
    yield _gauge("sources", "Sources seen in the ingest volume", [], [([], ingest["sources"])])
    yield _gauge("files", "Files now in the ingest volume", [], [([], ingest["files"])])
    yield _gauge(
        "files_rejected",
        "Files now in the ingest volume that were refused, by reason",
        ["reason"],
        (([reason], number) for reason, number in ingest["rejected"].items()),
    )
    yield _counter("contents_stored", "Distinct contents stored", [], [([], ingest["contents"])])
    yield _counter("contents_stored_bytes", "Size of the distinct contents", [], [([], ingest["bytes"])])
    yield _gauge(
        "contents",
        "Distinct contents by language",
        ["language"],
        (([language], number) for language, number in ingest["languages"].items()),
    )
    yield _gauge(
        "contents_above_threshold",
        "Contents with a score at or above QUALITY_THRESHOLD",
        [],
        [([], ingest["contents_above_threshold"])],
    )
    yield _scores(ingest)


def _scores(ingest: Json) -> Metric:
    buckets, below = [], 0
    for decade in ingest["scores"][:-1]:
        below += decade["contents"]
        buckets.append((f"{decade['to']}.0", below))
    buckets.append(("+Inf", below + ingest["scores"][-1]["contents"]))
    name, text = "ratchet_content_score", "Scores of the contents, 0 to 100"
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=ingest["score_sum"])


def _tracks(tracks: list[Json]) -> Iterator[Metric]:
    simple = (
        (_gauge, "new_contents", "Contents above the threshold in no round yet", "new_contents"),
        (_gauge, "trained_contents", "Contents the champion learned from", "trained_contents"),
        (_counter, "samples_trained", "Samples of all finished rounds", "samples_trained"),
        (_counter, "tokens_trained", "Tokens of all finished rounds", "tokens_trained"),
        (_counter, "training_seconds", "Time spent in finished rounds", "seconds_trained"),
    )
    for family, name, text, key in simple:
        yield family(name, text, ["track"], [([track["name"]], track[key]) for track in tracks])
    yield _counter(
        "rounds",
        "Closed rounds by outcome",
        ["track", "state"],
        (
            ([track["name"], state], track["rounds"][state])
            for track in tracks
            for state in RoundState
            if state is not RoundState.OPEN
        ),
    )
    yield _gauge(
        "champion_round",
        "Number of the round whose adapter is served",
        ["track"],
        (([track["name"]], track["champion"]["round"]) for track in tracks if track["champion"]),
    )
    yield _gauge(
        "lease_held",
        "1 while a trainer holds the track",
        ["track"],
        (([track["name"]], track["lease"]["held"]) for track in tracks),
    )
    yield _gauge(
        "last_training_timestamp_seconds",
        "When the last round closed",
        ["track"],
        (([track["name"]], time.timestamp()) for track in tracks if (time := track["last_training_time"])),
    )


def _last_verdicts(rounds: list[Json]) -> Iterator[Metric]:
    """Figures of each track's newest finished training and newest verdict; rounds come newest first."""
    trained: dict[str, Json] = {}
    judged: dict[str, Json] = {}
    for row in rounds:
        if row["state"] == RoundState.OPEN:
            continue
        if row["training"]:
            trained.setdefault(row["track"], row["training"])
        if row["verdict"] and row["verdict"].get("bits_per_byte"):
            judged.setdefault(row["track"], row["verdict"])

    simple = (
        (trained, "train_loss", "Training loss of the last round, nats a token", "train_loss"),
        (trained, "eval_loss", "Validation loss of the last round, nats a token", "eval_loss"),
        (judged, "improvement_ratio", "Share of bits saved in the last verdict", "improvement"),
    )
    for figures, name, text, key in simple:
        yield _gauge(name, text, ["track"], [([track], row.get(key)) for track, row in figures.items()])
    yield _gauge(
        "bits_per_byte",
        "Held-out bits per byte in the last verdict",
        ["track", "subject"],
        (
            ([track, subject], verdict["bits_per_byte"].get(subject))
            for track, verdict in judged.items()
            for subject in Subject
        ),
    )


def _running(running: Json | None) -> Iterator[Metric]:
    if running is None:
        return
    figures = (
        ("round_step", "Optimizer step of the running round", "step"),
        ("round_steps", "Optimizer steps the running round will take", "total_steps"),
        ("round_loss", "Last training loss of the running round, nats a token", "loss"),
        ("round_tokens_per_second", "Training speed of the running round", "tokens_per_s"),
        ("round_remaining_seconds", "Estimated time to the end of training", "eta_s"),
        ("round_attempts", "Times the running round was started", "attempts"),
    )
    for name, text, key in figures:
        yield _gauge(name, text, ["track"], [([running["track"]], running[key])])


def _gauge(name: str, text: str, labels: list[str], samples: Samples) -> Metric:
    return _filled(Gauge(f"ratchet_{name}", text, labels=labels), samples)


def _counter(name: str, text: str, labels: list[str], samples: Samples) -> Metric:
    return _filled(Counter(f"ratchet_{name}", text, labels=labels), samples)


def _filled(family: Gauge | Counter, samples: Samples) -> Metric:
    """The family with those samples that are finite numbers."""
    for labels, value in samples:
        if is_figure(value):
            family.add_metric(labels, float(value))
    return family
