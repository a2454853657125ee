"""W&B and TensorBoard: both see every figure a round logs, neither can stop a round."""

import logging
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from services.core.settings import Settings

log = logging.getLogger(__name__)
Write = Callable[[Mapping[str, float], int], None]


class Trackers:
    """Where the round's figures go besides the database. One that fails is said so and left out."""

    def __init__(self, settings: Settings, track: str, round_name: str, config: Mapping[str, Any]) -> None:
        self._writers: dict[str, tuple[Write, Callable[[], None]]] = {}
        self._open(
            "TensorBoard", lambda: _tensorboard(settings.logs_dir / "tensorboard" / track / round_name)
        )
        self._open("W&B", lambda: _wandb(settings, track, round_name, config))

    def log(self, metrics: Mapping[str, Any], step: int) -> None:
        numbers = {name: float(value) for name, value in metrics.items() if isinstance(value, int | float)}
        finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
        for name in list(self._writers):
            self._guard(name, lambda write: write(finite, step), 0)

    def close(self) -> None:
        for name in list(self._writers):
            self._guard(name, lambda close: close(), 1)
        self._writers.clear()

    def _open(self, name: str, start: Callable[[], tuple[Write, Callable[[], None]] | None]) -> None:
        try:
            writer = start()
        except Exception as exc:  # whatever a tracker raises, the round goes on
            log.warning(
                "%s does not start (%s: %s); the round goes on without it", name, type(exc).__name__, exc
            )
            return
        if writer is not None:
            self._writers[name] = writer

    def _guard(self, name: str, use: Callable[[Any], None], part: int) -> None:
        try:
            use(self._writers[name][part])
        except Exception as exc:  # as above
            log.warning("%s failed (%s: %s); the round goes on without it", name, type(exc).__name__, exc)
            self._writers.pop(name, None)


def wandb_mode(settings: Settings) -> str:
    """What WANDB_MODE says; otherwise online with a key and offline without one."""
    return settings.wandb_mode or ("online" if settings.wandb_api_key else "offline")


def _tensorboard(folder: Path) -> tuple[Write, Callable[[], None]]:
    from torch.utils.tensorboard import SummaryWriter

    writer: Any = SummaryWriter(str(folder))

    def write(metrics: Mapping[str, float], step: int) -> None:
        for name, value in metrics.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return write, writer.close


def _wandb(
    settings: Settings, track: str, round_name: str, config: Mapping[str, Any]
) -> tuple[Write, Callable[[], None]] | None:
    mode = wandb_mode(settings)
    if mode == "disabled":
        return None
    import wandb

    if settings.wandb_api_key is not None:
        os.environ["WANDB_API_KEY"] = settings.wandb_api_key.get_secret_value()
    folder = settings.logs_dir / "wandb"
    folder.mkdir(parents=True, exist_ok=True)
    run: Any = wandb.init(
        project=settings.wandb_project,
        entity=settings.wandb_entity,
        mode=mode,  # type: ignore[arg-type]
        group=track,
        name=f"{track}-{round_name}",
        config=dict(config),
        dir=str(folder),
        settings=wandb.Settings(silent=True, init_timeout=30, console="off"),
    )
    return (lambda metrics, step: run.log(dict(metrics), step=step)), run.finish
