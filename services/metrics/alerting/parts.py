"""Parts that are silent, cannot work or do not answer."""

from collections.abc import Iterator
from datetime import datetime

from services.core.models import Json
from services.metrics.alerting.alert import Alert, Severity
from services.metrics.health import Health, Part, Status


def stalled(snapshot: Json, health: Health) -> Iterator[Alert]:
    since = {(row["service"], row["track"] or ""): row["suspected_at"] for row in snapshot.get("stalls", [])}
    for name, part in health.parts.items():
        for track, one in (part.tracks or {"": part}).items():
            if one.status is Status.ILL:
                yield _ill(name, track, one, since.get((name, track)))


def _ill(name: str, track: str, part: Part, since: datetime | None) -> Alert:
    whose = f"the {name} of {track}" if track else f"the {name}"
    if name == "database":
        title, cure = "The database is ill", "Start it (`ratchet up`), or read its log: `ratchet logs`."
    elif part.state is None:
        title, cure = (
            f"No {name} has been seen",
            f"Start one: `ratchet up`, or `docker compose up -d {name}`.",
        )
    elif part.reason.startswith(f"{part.state}:"):
        title = f"{whose} cannot work"
        cure = f"It tries again by itself. If this stays, do what it says, or read `ratchet logs {name}`."
    else:
        title = f"{whose} is silent"
        cure = (
            f"See whether it runs (`ratchet status`), read `ratchet logs {name}`, or start it: `ratchet up`."
        )
    title = title[0].upper() + title[1:]
    return Alert("stalled", Severity.BAD, title, part.reason, cure, since, track or None)
