"""How full the disks are that a service writes to: told with its heartbeat."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from services.core.models import Json


def room(folders: Iterable[Path]) -> list[Json]:
    """`path`, `free_bytes` and `total_bytes` of each file system below these folders, each once.

    Of a folder that is not there yet the one above it counts; one that cannot be looked at is left out.
    """
    found: dict[int, Json] = {}
    for folder in folders:
        there = next((each for each in (folder, *folder.absolute().parents) if each.is_dir()), None)
        try:
            if there is None or (device := there.stat().st_dev) in found:
                continue
            usage = shutil.disk_usage(there)
        except OSError:
            continue
        found[device] = {"path": str(there), "free_bytes": usage.free, "total_bytes": usage.total}
    return list(found.values())
