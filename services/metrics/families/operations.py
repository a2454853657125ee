"""Disks, the database, events, webhooks, and what was forgotten."""

from collections.abc import Callable

from services.core.models import Json, Service
from services.metrics.families.family import Family, Samples, Section, View, each, heard, of


def _disks(key: str) -> Callable[[View], Samples]:
    """A figure of every file system that a living service writes to, as services/core/room.py has it."""
    return lambda view: (
        ((service, track, str(disk.get("path"))), disk.get(key))
        for service in Service
        for track, detail in heard(view.snapshot or {}, service)
        for disk in _listed(detail.get("disks"))
    )


def _listed(disks: object) -> list[Json]:
    """Heartbeats of another version may have none, or something else."""
    return [disk for disk in disks if isinstance(disk, dict)] if isinstance(disks, list) else []


def _rows(name: str) -> Callable[[Json], list[Json]]:
    def rows(snapshot: Json) -> list[Json]:
        found: list[Json] = snapshot["operations"][name]
        return found

    return rows


def _deliveries(view: View) -> Samples:
    rows = _rows("deliveries")(view.snapshot or {})
    return (
        ((row["endpoint"], state), row[state]) for row in rows for state in ("delivered", "given_up")
    )  # fmt: skip


VOLUME = ("service", "track", "volume")

SECTION = Section(
    "Operation",
    (
        Family("disk_free_bytes", "gauge", "Room for the services on a volume", _disks("free_bytes"), VOLUME),
        Family(
            "disk_size_bytes", "gauge", "Size of the file system of a volume", _disks("total_bytes"), VOLUME
        ),
        Family("database_size_bytes", "gauge", "Size of the database", of("operations", "database", "bytes")),
        Family(
            "database_migration",
            "gauge",
            "Number of the newest migration that was applied",
            of("operations", "database", "migration"),
        ),
        Family("events", "counter", "Events by kind", each(_rows("events"), ["kind"], "events"), ("kind",)),
        Family(
            "control_requests",
            "gauge",
            "What people asked of trainers, by what became of it",
            each(_rows("requests"), ["kind", "state"], "requests"),
            ("kind", "state"),
        ),
        Family(
            "webhook_deliveries",
            "counter",
            "Messages that an endpoint took, and those given up after the last attempt",
            _deliveries,
            ("endpoint", "outcome"),
        ),
        Family(
            "webhook_deliveries_due",
            "gauge",
            "Messages that an endpoint is still to get",
            each(_rows("deliveries"), ["endpoint"], "due"),
            ("endpoint",),
        ),
        Family(
            "webhook_endpoint_disabled",
            "gauge",
            "1 for an endpoint that gets nothing until `ratchet webhook test` reaches it",
            each(_rows("deliveries"), ["endpoint"], "disabled"),
            ("endpoint",),
        ),
        Family(
            "forgettings",
            "counter",
            "Times that something was forgotten",
            of("operations", "forgotten", "forgettings"),
        ),
        Family(
            "forgettings_unfinished",
            "gauge",
            "Forgettings that have not come to their end",
            of("operations", "forgotten", "unfinished"),
        ),
        Family(
            "forgotten_sources",
            "gauge",
            "Whole sources that are forgotten and have not been remembered",
            of("operations", "forgotten", "sources"),
        ),
        Family(
            "forgotten_contents",
            "gauge",
            "Contents whose text was forgotten",
            of("operations", "forgotten", "contents"),
        ),
        Family(
            "tainted_adapters",
            "gauge",
            "Adapters that learned from what was forgotten since",
            of("operations", "forgotten", "adapters"),
        ),
    ),
)
