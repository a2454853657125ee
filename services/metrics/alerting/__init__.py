"""What a person should look at: one pure function of the snapshot and the health, no clock, no database."""

from services.core.models import Json
from services.metrics.alerting.alert import Alert, Severity
from services.metrics.alerting.disks import disks
from services.metrics.alerting.forgetting import forgetting
from services.metrics.alerting.parts import stalled
from services.metrics.alerting.rounds import attempts, failing, refusing
from services.metrics.health import Health

__all__ = ["Alert", "Severity", "alerts"]


def alerts(snapshot: Json | None, health: Health) -> list[Alert]:
    """All that is wrong, the worst first. Without a snapshot, what health alone says."""
    found = list(stalled(snapshot or {}, health))
    if snapshot is not None:
        for track in snapshot["tracks"]:
            rounds = [row for row in snapshot["rounds"] if row["track"] == track["name"]]
            found += [*failing(rounds), *refusing(rounds), *attempts(rounds)]
        found += [*disks(snapshot["services"]), *forgetting(snapshot)]
    return sorted(found, key=lambda alert: alert.severity is not Severity.BAD)
