"""The child's sign of life: a small file it rewrites from the training thread; the daemon judges it."""

import json
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from services.core.models import ServiceState

FILE_NAME = "beat.json"
MIN_INTERVAL = 0.5  # seconds between two writes while the state stays the same


@dataclass(frozen=True)
class Beat:
    """Where the child is. `counter` grows with every beat: one that stands still is a stuck child."""

    counter: int = 0
    state: ServiceState = ServiceState.STARTING
    round_id: int | None = None
    round: int | None = None
    attempt: int = 0
    step: int | None = None
    total_steps: int | None = None
    loss: float | None = None
    tokens_per_s: float | None = None
    eta_s: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    mfu: float | None = None  # share of the devices' peak
    memory_bytes: float | None = None  # at the peak
    input_stall: float | None = None  # share of the time spent waiting for data
    gpu_utilisation: float | None = None  # share of the time in which the first GPU was busy
    gpu_memory_bytes: float | None = None  # in use on it, by whomever
    gpu_memory_size_bytes: float | None = None
    message: str | None = None
    permanent: bool = False  # the message is an error that trying again at once will not cure


class Heart:
    """Writes beats below a directory; silent (`directory=None`) on every rank but the first."""

    def __init__(self, directory: Path | None) -> None:
        self._path = None if directory is None else directory / FILE_NAME
        self._beat = Beat()
        self._written_at = -MIN_INTERVAL
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def beat(self, *, urgent: bool = False, **changes: object) -> None:
        """Note progress; what is urgent or changes the state is written at once, the rest twice a second."""
        before = self._beat
        self._beat = replace(before, counter=before.counter + 1, **changes)  # type: ignore[arg-type]  # fields by name
        now = time.monotonic()
        unchanged = self._beat.state is before.state and not urgent
        if unchanged and now - self._written_at < MIN_INTERVAL:
            return
        self._written_at = now
        if self._path is not None:
            temporary = self._path.with_suffix(".tmp")
            temporary.write_text(json.dumps(asdict(self._beat)), encoding="utf-8")
            os.replace(temporary, self._path)


def read(directory: Path) -> Beat | None:
    """The newest beat below a directory; None before the first."""
    try:
        fields = json.loads((directory / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return Beat(**{**fields, "state": ServiceState(fields["state"])})
