"""The state in a few figures, a topic each: what the stream tells when it has changed. Pure."""

from typing import Any

from services.core.models import Json
from services.metrics.cached import Reading
from services.metrics.health import Health

NEWEST = 3  # rounds told with their states


def topics(reading: Reading[dict[str, Any]], health: Health) -> dict[str, Json]:
    """Topic → small JSON, without what grows with the clock alone; health alone while nothing was read."""
    parts = {name: {"status": part.status, "state": part.state} for name, part in health.parts.items()}
    found: dict[str, Json] = {
        "health": {"status": health.status, "stale": reading.is_stale, "parts": parts},
    }
    if reading.value is not None:
        found["ingest"] = _ingest(reading.value)
        found["rounds"] = _rounds(reading.value)
        found["adapters"] = _adapters(reading.value)
    return found


def _ingest(value: Json) -> Json:
    figures = ("sources", "files_accepted", "files_rejected", "contents", "contents_above_threshold")
    return _named(value["ingest"], *figures)


def _rounds(value: Json) -> Json:
    running: Json | None = value["running_round"]
    figures = ("track", "number", "state", "step", "total_steps", "loss", "tokens_per_s", "eta_s", "message")
    return {
        "running": None if running is None else _named(running, *figures),
        "newest": [
            {name: row[name] for name in ("track", "number", "state")} for row in value["rounds"][:NEWEST]
        ],
        "new_contents": {track["name"]: track["new_contents"] for track in value["tracks"]},
        "paused": [track["name"] for track in value["tracks"] if track.get("paused")],
    }


def _adapters(value: Json) -> Json:
    champions = {track["name"]: track["champion"] for track in value["tracks"]}
    return {
        "champions": {name: champion and champion["directory"] for name, champion in champions.items()},
        "promoted_at": {name: champion and champion["promoted_at"] for name, champion in champions.items()},
    }


def _named(value: Json, *names: str) -> Json:
    return {name: value[name] for name in names}
