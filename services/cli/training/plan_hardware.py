"""What `ratchet plan` plans for: what its options name, or what this machine has."""

import os
import re
import shutil
import subprocess

from services.core.errors import ConfigurationError
from services.trainer.plan import Hardware
from services.trainer.plan.hardware import GIB

GB = 1e9
MIB = 2**20
SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>GiB|GB|G|MiB|MB|TiB|TB)", re.IGNORECASE)
UNITS = {"g": GB, "gb": GB, "gib": GIB, "mb": 1e6, "mib": MIB, "tb": 1e12, "tib": 2**40}


def size(text: str, option: str) -> int:
    """Bytes of "32GB" or "32GiB". Raises ConfigurationError that names the option and its value."""
    match = SIZE.fullmatch(text.strip())
    if match is None or (found := float(match["number"]) * UNITS[match["unit"].lower()]) <= 0:
        raise ConfigurationError(f"{option} {text}: expected a number above 0 and a unit, as 32GB or 31.5GiB")
    return int(found)


def named(device: str | None, vram: str | None, gpus: int | None) -> Hardware:
    """What the options name; what they leave open is this machine's."""
    memory = None if vram is None else size(vram, "--vram")
    if device is not None and device.lower() == "cpu":
        return _this_cpu()
    if device is not None:
        return Hardware.gpu(device, memory, gpus or 1)
    here = _gpus_here()
    if here:
        name, total = here[0]
        return Hardware.gpu(name, memory or total, gpus or len(here))
    if memory is not None:
        return Hardware.gpu(f"GPU of {memory / GB:g} GB", memory, gpus or 1)
    return _this_cpu()


def _gpus_here() -> list[tuple[str, int]]:
    """Name and bytes of each GPU of this machine; none when its driver's tool is not there or fails."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.rpartition(",") for line in done.stdout.splitlines()]
    return [(name.strip(), int(mib) * MIB) for name, _, mib in rows if mib.strip().isdigit()]


def _this_cpu() -> Hardware:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Hardware.cpu(len(os.sched_getaffinity(0)), memory)
