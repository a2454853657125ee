"""Processors, memory and disks, as this process may use them."""

import os
import platform
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from services.cli.doctor.finding import Finding, error, ok, warning
from services.cli.environment import Environment

GB = 1e9
CORES = 2
MEMORY, FREE_MEMORY = 4 * GB, 3 * GB  # the demonstration's round peaks at about 2.5 GB, beside PostgreSQL
DISK_LOW, DISK_OUT = 10 * GB, 1 * GB  # free bytes: the first is a base model and some adapters
CGROUP = Path("/sys/fs/cgroup")


def processors(_environment: Environment) -> Iterable[Finding]:
    cores = usable_cores()
    said = f"{cores:g} processor cores, Python {platform.python_version()}"
    if cores < CORES:
        cure = f"give it {CORES} or more: a round would take hours"
        return [warning("machine", said, cure)]
    return [ok("machine", said)]


def usable_cores(cgroup: Path = CGROUP) -> float:
    """Cores this process may run on: its affinity, and its control group's quota (cgroup v2, cpu.max)."""
    cores = float(len(os.sched_getaffinity(0)))
    try:
        quota, period = (cgroup / "cpu.max").read_text(encoding="ascii").split()
        return min(cores, int(quota) / int(period))
    except (OSError, ValueError):  # no such file, or `max`
        return cores


def memory(_environment: Environment) -> Iterable[Finding]:
    total, free = usable_memory()
    said = f"{total / GB:.1f} GB of memory, {free / GB:.1f} GB of it free"
    if total < MEMORY:
        return [error("memory", said, f"{MEMORY / GB:g} GB are the least that a round of demo works with")]
    if free < FREE_MEMORY:
        return [warning("memory", said, "end what else runs: a round may be killed for want of memory")]
    return [ok("memory", said)]


def usable_memory(cgroup: Path = CGROUP) -> tuple[float, float]:
    """Bytes there are and are free, within the limit of the control group (cgroup v2, memory.max)."""
    here = psutil.virtual_memory()
    total, free = float(here.total), float(here.available)
    try:
        limit = int((cgroup / "memory.max").read_text(encoding="ascii"))
        used = int((cgroup / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return total, free
    return min(total, limit), min(free, max(0, limit - used))


def disks(environment: Environment) -> Iterator[Finding]:
    """Whether each folder can be used, and how much room each file system has."""
    settings = environment.settings
    yield from ingest(settings.ingest_dir)
    written = {
        "RATCHET_HOME": settings.ratchet_home,
        "ADAPTERS_DIR": settings.adapters_dir,
        "CHECKPOINTS_DIR": settings.checkpoints_dir,
        "LOGS_DIR": settings.logs_dir,
        "CACHE_DIR": settings.cache_dir,
    }
    systems: dict[int, tuple[Path, list[str]]] = {}
    for name, path in written.items():
        there = existing(path)
        if there is None or not os.access(there, os.W_OK | os.X_OK):
            cure = f"make it writable for this user, or set {name} to a folder that is"
            yield error("disk", f"{name}={path} cannot be written", cure)
        else:
            systems.setdefault(there.stat().st_dev, (there, []))[1].append(name)
    for there, names in systems.values():
        yield room(there, names)


def ingest(path: Path) -> Iterable[Finding]:
    there = existing(path)
    if there is None or not os.access(there, os.R_OK | os.X_OK):
        cure = "let this user read it, or set INGEST_DIR to the folder with your code"
        return [error("ingest", f"INGEST_DIR={path} cannot be read", cure)]
    if not path.exists() or not any(path.iterdir()):
        said = f"{path} is empty: `ratchet up` puts demonstration code there"
        return [warning("ingest", said, "`ratchet add PATH|URL` brings your own code in")]
    count = sum(1 for _ in path.iterdir())
    return [ok("ingest", f"{path} has {count:,} {'entry' if count == 1 else 'entries'}")]


def room(there: Path, names: list[str]) -> Finding:
    free = shutil.disk_usage(there).free
    said = f"{free / GB:,.1f} GB free for {', '.join(names)}"
    if free < DISK_OUT:
        return error("disk", said, "make room: nothing could be published, and PostgreSQL would stop")
    if free < DISK_LOW:
        return warning("disk", said, "make room soon, or move the largest to another disk by these settings")
    return ok("disk", said)


def existing(path: Path) -> Path | None:
    """The folder, or the nearest one above it that is there; None when a file is in its place."""
    found = next((each for each in (path, *path.parents) if each.exists()), None)
    return found if found is not None and found.is_dir() else None
