"""How fast a training runs: tokens a second, share of the hardware's peak, time lost waiting for data."""

import math
import resource
from collections import deque
from dataclasses import dataclass

import torch

WINDOW = 20  # steps that the rates are of
KIB = 1024  # bytes; Linux gives a process's peak memory in these


@dataclass(frozen=True)
class Speed:
    """What one of the processes' tokens cost and what their devices can do. None: unknown, so no MFU."""

    flops_per_token: float | None = None  # of the model, without recomputation
    peak_flops: float | None = None  # a second, of all devices together


class Meter:
    """Rates over the last steps."""

    def __init__(self, speed: Speed) -> None:
        self._speed = speed
        self._steps: deque[tuple[int, float, float]] = deque(maxlen=WINDOW)  # tokens, seconds, waiting
        self._evaluations: deque[float] = deque(maxlen=WINDOW)  # seconds
        self._warm = False

    def step(self, tokens: int, seconds: float, waiting: float) -> None:
        """The first step, in which layers may be compiled, counts only until there is a second."""
        if self._steps and not self._warm:
            self._steps.clear()
            self._warm = True
        self._steps.append((tokens, seconds, waiting))

    def evaluation(self, seconds: float) -> None:
        self._evaluations.append(seconds)

    @property
    def tokens_per_s(self) -> float:
        seconds = sum(step[1] for step in self._steps)
        return sum(step[0] for step in self._steps) / seconds if seconds else 0.0

    def seconds_left(self, steps: int, evaluations: int) -> float | None:
        """For so many steps and evaluations; None before the first step."""
        if not self._steps:
            return None
        each = sum(step[1] for step in self._steps) / len(self._steps)
        evaluation = sum(self._evaluations) / len(self._evaluations) if self._evaluations else 0.0
        return steps * each + evaluations * evaluation

    def metrics(self, device: torch.device) -> dict[str, float]:
        """Of the last steps: tokens_per_s, input_stall, memory_bytes; mfu and the GPU's where known."""
        seconds = sum(step[1] for step in self._steps)
        found = {
            "tokens_per_s": self.tokens_per_s,
            "input_stall": sum(step[2] for step in self._steps) / seconds if seconds else 0.0,
            "memory_bytes": float(peak_memory(device)),
        }
        if self._speed.flops_per_token and self._speed.peak_flops:
            found["mfu"] = self.tokens_per_s * self._speed.flops_per_token / self._speed.peak_flops
        if device.type == "cuda":
            found |= _gpu(device)
        return {name: value for name, value in found.items() if math.isfinite(value)}


def peak_memory(device: torch.device) -> int:
    """Bytes: of the GPU's tensors, or of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB


def _gpu(device: torch.device) -> dict[str, float]:
    """What the driver says of the device, where its library for Python is installed."""
    try:
        return {
            "gpu_utilisation": torch.cuda.utilization(device) / 100,
            "gpu_memory_bytes": float(torch.cuda.device_memory_used(device)),
            "gpu_memory_size_bytes": float(torch.cuda.get_device_properties(device).total_memory),
        }
    except Exception:  # no library, no right, no such counter: figures for show only
        return {}
