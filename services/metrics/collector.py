"""Read the whole state of Ratchet: a few read-only queries, sql/queries/metrics.sql, in one view."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from services.core.db import Database, Transaction, is_migrated
from services.core.errors import MigrationError
from services.core.models import Json, RoundState, Service
from services.core.settings import Settings
from services.metrics import operations
from services.metrics.health import Beat, Departure, VitalSigns

ROUNDS = 20  # newest rounds shown
HAPPENINGS = 40  # newest events that may be shown
CURVE_POINTS = 200  # of each kind; more than a chart can show
QUICK, PATIENT = 3_000, 30_000  # milliseconds a query of the vital signs, of the snapshot, may take
Counts = Mapping[str, tuple[int, int]]  # track → contents that are new to it, and those it was trained on
QUALITY_THRESHOLD = int(Settings.model_fields["quality_threshold"].default)


def vital_signs(database: Database) -> VitalSigns:
    """Whether the migrations are applied, every heartbeat, who left in good order, what is paused.

    Raises DatabaseUnavailableError when the database does not answer.
    """
    with database.transaction() as transaction:
        _look_only(transaction, QUICK)
        if not is_migrated(transaction):
            return VitalSigns(migrated=False)
        return VitalSigns(
            migrated=True,
            beats=[_beat(row) for row in transaction.all("metrics_beats")],
            departures=[Departure(*row) for row in transaction.all("metrics_departures")],
            paused={row.name for row in transaction.all("metrics_paused")},
        )


@dataclass
class Known:
    """What earlier snapshots have read and what does not change, or takes long to count."""

    compositions: dict[int, Json] = field(default_factory=dict)  # round → contents by role
    counts: Callable[[], Counts] | None = None  # None: counted with the rest


def counts(database: Database, quality_threshold: int) -> Counts:
    """What no table keeps count of: a pass over what was trained on, tenths of a second for millions.

    Raises as `snapshot`.
    """
    with _looking(database) as transaction:
        return _counts(transaction, quality_threshold)


def snapshot(
    database: Database, quality_threshold: int = QUALITY_THRESHOLD, known: Known | None = None
) -> dict[str, Any]:
    """The state of ingest, tracks, rounds and services, at one instant but for what is `known`.

    Values are those of PostgreSQL (datetimes, decimals): `services.metrics.document.strict_json`
    writes them. Raises DatabaseUnavailableError, or MigrationError when migrations are missing.
    """
    known = known or Known()
    counted = None if known.counts is None else known.counts()
    with _looking(database) as transaction:
        services = transaction.all("metrics_beats")
        tracks = transaction.all("metrics_tracks", quality_threshold=quality_threshold)
        rounds = _rounds(transaction, known)
        shown = _shown_round(rounds)
        counted = _counts(transaction, quality_threshold) if counted is None else counted
        return {
            "state": _state(tracks),
            "training_metrics": _training_metrics(rounds),
            "config": _config(tracks),
            "ingest": _ingest(transaction, quality_threshold),
            "tracks": [_track(row, counted.get(row.name, (0, 0))) for row in tracks],
            "rounds": rounds,
            "running_round": _running(rounds, services),
            "happenings": [row._asdict() for row in transaction.all("metrics_happenings", limit=HAPPENINGS)],
            "suites": _suites(transaction, rounds),
            "stalls": [row._asdict() for row in transaction.all("metrics_stalls")],
            "curve": None if shown is None else _curve(transaction, shown),
            "services": [row._asdict() for row in services],
            "operations": operations.read(transaction, quality_threshold),
        }


@contextmanager
def _looking(database: Database) -> Iterator[Transaction]:
    with database.transaction() as transaction:
        _look_only(transaction, PATIENT)
        if not is_migrated(transaction):
            raise MigrationError(f"migrations are missing at {database.target}: run `ratchet migrate`")
        yield transaction


def _counts(transaction: Transaction, quality_threshold: int) -> Counts:
    rows = transaction.all("metrics_counts", quality_threshold=quality_threshold)
    return {row.track: (row.new_contents, row.trained_contents) for row in rows}


def _look_only(transaction: Transaction, milliseconds: int) -> None:
    transaction.execute("metrics_read_only")
    transaction.execute("metrics_patience", milliseconds=milliseconds)


def _beat(row: Any) -> Beat:
    return Beat(
        service=row.service,
        instance=row.instance,
        state=row.state,
        detail=row.detail if isinstance(row.detail, dict) else {},
        age_seconds=row.age_seconds,
        up_seconds=row.up_seconds,
    )


def _state(tracks: Sequence[Any]) -> Json:
    """Totals over all tracks, under the names that users of the seed know."""
    return {
        "last_trained_id": max((row.last_trained_id or 0 for row in tracks), default=0),
        "total_training_runs": sum(row.promoted + row.refused + row.failed for row in tracks),
        "total_samples_trained": sum(row.samples for row in tracks),
        "last_training_time": max((row.last_closed_at for row in tracks if row.last_closed_at), default=None),
    }


def _training_metrics(rounds: Sequence[Json]) -> Json:
    """Figures of the last round that finished its training; nulls before there is one."""
    last = next((row for row in rounds if row["closed_at"] and row["training"]), None)
    training: Json = (last and last["training"]) or {}
    verdict: Json = (last and last["verdict"]) or {}
    bits: Json = verdict.get("bits_per_byte") or {}
    return {
        "eval_loss": training.get("eval_loss"),
        "train_loss": training.get("train_loss"),
        "bits_per_byte_before": bits.get(verdict.get("against") or "base"),
        "bits_per_byte_after": bits.get("candidate"),
        "improvement": verdict.get("improvement"),
        "promoted": verdict.get("promoted"),
        "steps": training.get("steps"),
        "tokens_per_s": training.get("tokens_per_s"),
        "round": last and last["number"],
        "track": last and last["track"],
    }


def _config(tracks: Sequence[Any]) -> Json:
    """The recipe of the track in use, its base model also under the seed's name, `model`."""
    recipe: Json = tracks[0].recipe if tracks else {}
    familiar = {"model": recipe.get("base_model"), "batch_size": None, "lora_r": None}
    return {**familiar, **recipe}


def _rounds(transaction: Transaction, known: Known) -> list[Json]:
    rows = [row._asdict() for row in transaction.all("metrics_rounds", limit=ROUNDS)]
    new = [row["id"] for row in rows if row["id"] not in known.compositions]
    if new:
        for found in transaction.all("metrics_compositions", round_ids=new):
            known.compositions[found.id] = {
                "train": found.train, "validation": found.validation, "held_out": found.held_out,
            }  # fmt: skip
    return [{**row, **known.compositions[row["id"]]} for row in rows]


def _ingest(transaction: Transaction, quality_threshold: int) -> Json:
    source = transaction.one("metrics_sources")
    counted = transaction.all("metrics_contents", quality_threshold=quality_threshold)
    files = {row.reason: row.files for row in transaction.all("metrics_files")}
    accepted = files.pop(None, 0)
    languages: Counter[str] = Counter()
    decades: Counter[int] = Counter()
    for row in counted:
        languages[row.language] += row.contents
        decades[row.decade] += row.contents
    return {
        "sources": source.sources,
        "last_scanned_at": source.last_scanned_at,
        "files": accepted + sum(files.values()),
        "files_accepted": accepted,
        "files_rejected": sum(files.values()),
        "rejected": files,
        "contents": sum(row.contents for row in counted),
        "bytes": sum(row.bytes for row in counted),
        "languages": dict(languages.most_common()),
        "quality_threshold": quality_threshold,
        "contents_above_threshold": sum(row.above_threshold for row in counted),
        "scores": [
            {"from": 10 * decade, "to": min(10 * decade + 9, 100), "contents": decades[decade]}
            for decade in range(11)
        ],
        "score_sum": sum(row.score_sum for row in counted),
    }


def _track(row: Any, counted: tuple[int, int]) -> Json:
    new, trained = counted
    champion = {
        "round": row.champion_round,
        "directory": row.champion_directory,
        "promoted_at": row.promoted_at,
        "reason": row.promotion_reason,
        "bits_per_byte": row.champion_bits,
        "pass_rates": row.champion_rates,
    }
    return {
        "name": row.name,
        "objective": row.recipe.get("objective"),
        "champion": champion if row.champion_round else None,
        "paused": row.paused,
        "pause": {"at": row.paused_at, "by": row.paused_by, "reason": row.pause_reason}
        if row.paused
        else None,
        "lease": {"held": row.lease_held, "holder": row.lease_holder, "expires_at": row.lease_expires_at},
        "new_contents": new,
        "trained_contents": trained,
        "rounds": {"promoted": row.promoted, "refused": row.refused, "failed": row.failed},
        "samples_trained": row.samples,
        "tokens_trained": row.tokens,
        "seconds_trained": row.seconds,
        "last_training_time": row.last_closed_at,
    }


def _shown_round(rounds: Sequence[Json]) -> Json | None:
    """The round whose curve is drawn: the open one, else the newest; one that has trained if any has."""
    return next((row for row in rounds if row["state"] == RoundState.OPEN or row["training"]), None)


def _running(rounds: Sequence[Json], services: Sequence[Any]) -> Json | None:
    """The open round with what its trainer last said of it."""
    opened = next((row for row in rounds if row["state"] == RoundState.OPEN), None)
    if opened is None:
        return None
    trainers = [
        row for row in services if row.service == Service.TRAINER and row.detail.get("round") is not None
    ]
    said = next((row for row in trainers if row.detail.get("track") == opened["track"]), None)
    detail: Json = said.detail if said else {}
    figures = ("step", "total_steps", "loss", "tokens_per_s", "eta_s", "message")
    return {
        "track": opened["track"],
        "number": opened["number"],
        "objective": opened["objective"],
        "attempts": opened["attempts"],
        "opened_at": opened["opened_at"],
        "state": said.state if said else None,
        "beat_age_seconds": said.age_seconds if said else None,
        **{name: detail.get(name) for name in figures},
    }


def _suites(transaction: Transaction, rounds: Sequence[Json]) -> list[Json]:
    """What base and candidate of the rounds shown scored in each suite, the oldest first."""
    found = transaction.all("metrics_suites", round_ids=[row["id"] for row in rounds])
    return [row._asdict() for row in found]


def _curve(transaction: Transaction, shown: Json) -> Json:
    points: dict[str, list[Json]] = {"train": [], "eval": []}
    for row in transaction.all("metrics_curve", round_id=shown["id"], points=CURVE_POINTS):
        points[row.kind].append({"step": row.step, **row.metrics})
    return {"track": shown["track"], "number": shown["number"], **points}
