"""What devices can do, by the name their driver gives them.

Rates are dense bf16 products with float32 sums, without sparsity, from NVIDIA's datasheets and architecture
whitepapers (H100/H200/B200 product briefs; "Ampere GA102", "Ada" and "RTX Blackwell" whitepapers for the RTX
cards; datasheets that print sparse rates: half of them). Memory is what CUDA reports, which is less than the
box says.
"""

import difflib
import re
from dataclasses import dataclass, replace

from services.core.errors import ConfigurationError

TERA, GIGA, GIB = 1e12, 1e9, 2**30
NVLINK_5, NVLINK_4, NVLINK_3 = 900 * GIGA, 450 * GIGA, 300 * GIGA  # bytes/s, one way
PCIE_5, PCIE_4 = 63 * GIGA, 31.5 * GIGA  # 16 lanes
QUALIFIERS = {
    "d",
    "laptop",
    "max",
    "mig",
    "mobile",
    "nvl",
    "pcie",
    "super",
    "ti",
}  # these make another device


@dataclass(frozen=True)
class Device:
    """One kind of GPU."""

    name: str
    peak_flops: float  # bf16, dense, per second
    memory_bytes: int
    bandwidth: float  # bytes/s of its memory
    link: float  # bytes/s to the next device, one way


def _device(name: str, tflops: float, gib: float, terabytes: float, link: float) -> Device:
    return Device(name, tflops * TERA, round(gib * GIB), terabytes * TERA, link)


DEVICES = (
    _device("B200", 2250, 178.0, 8.0, NVLINK_5),
    _device("H200", 989, 139.8, 4.8, NVLINK_4),
    _device("H200 NVL", 835, 139.8, 4.8, NVLINK_4),
    _device("H100", 989, 79.1, 3.35, NVLINK_4),
    _device("H100 PCIe", 756, 79.1, 2.0, PCIE_5),
    _device("H100 NVL", 835, 93.1, 3.9, PCIE_5),
    _device("A100", 312, 79.1, 2.04, NVLINK_3),
    _device("A100 40GB", 312, 39.4, 1.56, NVLINK_3),
    _device("A100 80GB PCIe", 312, 79.1, 1.94, PCIE_4),
    _device("A100 40GB PCIe", 312, 39.4, 1.56, PCIE_4),
    _device("A40", 150, 44.4, 0.696, PCIE_4),
    _device("A10", 125, 22.0, 0.6, PCIE_4),
    _device("A6000", 155, 47.4, 0.768, PCIE_4),
    _device("L40S", 362, 44.4, 0.864, PCIE_4),
    _device("L40", 181, 44.4, 0.864, PCIE_4),
    _device("L4", 121, 22.0, 0.3, PCIE_4),
    _device("RTX PRO 6000 Blackwell", 504, 94.9, 1.79, PCIE_5),
    _device("RTX 6000 Ada", 364, 47.4, 0.96, PCIE_4),
    _device("RTX 5090", 209.5, 31.3, 1.79, PCIE_5),
    _device("RTX 4090", 165, 23.6, 1.01, PCIE_4),
    _device("RTX 4070 Ti", 80, 11.6, 0.504, PCIE_4),
    _device("RTX 3090", 71, 23.6, 0.936, PCIE_4),
)


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", name.lower()))


def find(name: str) -> Device | None:
    """The device a driver's or a person's name means; None when it is none of the table.

    "NVIDIA H100 80GB HBM3" is the H100, "NVIDIA GeForce RTX 4090 Laptop GPU" is no RTX 4090.
    """
    words = _words(name)
    fitting = [
        device
        for device in DEVICES
        if _words(device.name) <= words and words & QUALIFIERS <= _words(device.name)
    ]
    return max(fitting, key=lambda device: len(_words(device.name)), default=None)


def peak_flops(name: str) -> float | None:
    """Dense bf16 operations a second by the datasheet; None for a device that is not in the table."""
    device = find(name)
    return None if device is None else device.peak_flops


@dataclass(frozen=True)
class Hardware:
    """What a plan is made for: `devices` alike, each with `memory_bytes` for one process."""

    name: str
    memory_bytes: int  # of one device, that this process may use, its CUDA context among it
    devices: int = 1
    cores: int = 0  # above 0: no GPU, but this many cores
    peak_flops: float | None = None  # None: a device of unknown speed
    bandwidth: float = TERA  # bytes/s
    link: float = PCIE_4  # bytes/s

    @property
    def is_cpu(self) -> bool:
        return self.cores > 0

    @classmethod
    def gpu(cls, name: str, memory_bytes: int | None = None, devices: int = 1) -> "Hardware":
        """A GPU by its driver's name, which need not be known when its memory is given.

        Raises ConfigurationError for an unknown name without memory.
        """
        device = find(name)
        if device is not None:
            return cls(
                device.name,
                device.memory_bytes if memory_bytes is None else memory_bytes,
                devices,
                peak_flops=device.peak_flops,
                bandwidth=device.bandwidth,
                link=device.link,
            )
        if memory_bytes is not None:
            return cls(name, memory_bytes, devices)
        known = [device.name for device in DEVICES]
        nearest = difflib.get_close_matches(name.upper(), known, 1, 0.0)[0]
        raise ConfigurationError(
            f"device {name!r} is unknown: did you mean {nearest}? (known: {', '.join(known)};"
            " for another say its memory with --vram)"
        )

    @classmethod
    def cpu(cls, cores: int, memory_bytes: int) -> "Hardware":
        return cls(f"CPU with {cores} core{'s' if cores > 1 else ''}", memory_bytes, cores=cores)

    def times(self, devices: int) -> "Hardware":
        """As many devices of the same kind."""
        return replace(self, devices=devices)
