"""Little room on the disks that the heartbeats tell of."""

from collections.abc import Iterator, Sequence

from services.core.models import Json
from services.metrics.alerting.alert import Alert, Severity
from services.metrics.document import is_figure

TIGHT_BYTES, TIGHT_SHARE = 20 * 2**30, 0.10  # free on a disk: below both is tight
FULL_BYTES = 2 * 2**30  # free on a disk: a checkpoint may not fit any more


def disks(services: Sequence[Json]) -> Iterator[Alert]:
    seen = set()
    for row in services:
        for disk in _told_disks(row):
            free, total = disk["free_bytes"], disk["total_bytes"]
            is_tight = free < TIGHT_BYTES and free < TIGHT_SHARE * total
            if (row["service"], disk["path"]) in seen or not (is_tight or free < FULL_BYTES):
                continue
            seen.add((row["service"], disk["path"]))
            is_full = free < FULL_BYTES
            yield Alert(
                "disk",
                Severity.BAD if is_full else Severity.WAIT,
                f"The {row['service']}'s disk is {'full' if is_full else 'nearly full'}",
                f"{_gigabytes(free)} of {_gigabytes(total)} are free where {disk['path']} lies.",
                "Make room: old checkpoints, caches and adapters that nothing serves; or a larger volume.",
            )


def _told_disks(row: Json) -> list[Json]:
    """The figures of a heartbeat, as services/core/room.py has them; what is no figure is left out."""
    told = row["detail"].get("disks") if isinstance(row["detail"], dict) else None
    return [
        disk
        for disk in (told if isinstance(told, list) else [])
        if isinstance(disk, dict) and is_figure(disk.get("free_bytes")) and is_figure(disk.get("total_bytes"))
    ]


def _gigabytes(size: float) -> str:
    return f"{size / 2**30:,.1f} GiB"
