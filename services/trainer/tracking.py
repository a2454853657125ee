"""W&B and TensorBoard: both see every figure a round logs, neither can stop a round."""

import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from services.core.settings import Settings
from services.trainer.predictions import Prediction

log = logging.getLogger(__name__)
TABLE = "predictions"  # the name of the table in W&B


class Tracker(Protocol):
    """One place that figures go to."""

    def log(self, metrics: Mapping[str, float], step: int) -> None: ...
    def table(self, rows: Sequence[Mapping[str, Any]], step: int) -> None: ...
    def close(self) -> None: ...


class Trackers:
    """Where the round's figures go besides the database. One that fails is said so and left out."""

    def __init__(self, settings: Settings, track: str, round_name: str, config: Mapping[str, Any]) -> None:
        self._trackers: dict[str, Tracker] = {}
        folder = settings.logs_dir / "tensorboard" / track / round_name
        self._open("TensorBoard", lambda: _TensorBoard(folder))
        if wandb_mode(settings) != "disabled":
            self._open("W&B", lambda: _Wandb(settings, track, round_name, config))

    @property
    def shows_tables(self) -> bool:
        return "W&B" in self._trackers

    def log(self, metrics: Mapping[str, Any], step: int) -> None:
        """The numbers among the metrics; one that is not finite has no place on a curve."""
        numbers = {name: float(value) for name, value in metrics.items() if isinstance(value, int | float)}
        finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
        self._each(lambda tracker: tracker.log(finite, step))

    def table(self, predictions: Sequence[Prediction], step: int) -> None:
        """What the model writes next, as a table of one evaluation."""
        rows = [asdict(prediction) for prediction in predictions]
        if rows:
            self._each(lambda tracker: tracker.table(rows, step))

    def close(self) -> None:
        self._each(lambda tracker: tracker.close())
        self._trackers.clear()

    def _open(self, name: str, start: Callable[[], Tracker]) -> None:
        try:
            self._trackers[name] = start()
        except Exception as exc:  # whatever a tracker raises, the round goes on
            said = type(exc).__name__
            log.warning("%s does not start (%s: %s); the round goes on without it", name, said, exc)

    def _each(self, use: Callable[[Tracker], None]) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                use(tracker)
            except Exception as exc:  # as above
                log.warning("%s failed (%s: %s); the round goes on without it", name, type(exc).__name__, exc)
                self._trackers.pop(name, None)


def wandb_mode(settings: Settings) -> str:
    """What WANDB_MODE says; otherwise online with a key and offline without one."""
    return settings.wandb_mode or ("online" if settings.wandb_api_key else "offline")


class _TensorBoard:
    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder))

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def table(self, rows: Sequence[Mapping[str, Any]], step: int) -> None:
        """As text: TensorBoard knows no tables."""
        for row in rows:
            text = "\n\n".join(f"{name}:\n\n```\n{value}\n```" for name, value in row.items())
            self._writer.add_text(f"{TABLE}/{row['content_id']}", text, step)

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    """Offline runs lie below LOGS_DIR/wandb; `wandb sync` sends them later."""

    def __init__(self, settings: Settings, track: str, round_name: str, config: Mapping[str, Any]) -> None:
        import wandb

        if settings.wandb_api_key is not None:
            os.environ["WANDB_API_KEY"] = settings.wandb_api_key.get_secret_value()
        folder = settings.logs_dir / "wandb"
        folder.mkdir(parents=True, exist_ok=True)
        self._table = wandb.Table
        self._run: Any = wandb.init(
            project=settings.wandb_project,
            entity=settings.wandb_entity,
            mode=wandb_mode(settings),  # type: ignore[arg-type]
            group=track,
            name=f"{track}-{round_name}",
            config=dict(config),
            dir=str(folder),
            settings=wandb.Settings(silent=True, init_timeout=30, console="off"),
        )

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self._run.log(dict(metrics), step=step)

    def table(self, rows: Sequence[Mapping[str, Any]], step: int) -> None:
        columns = list(rows[0])
        data = [[row[column] for column in columns] for row in rows]
        self._run.log({TABLE: self._table(columns=columns, data=data)}, step=step)

    def close(self) -> None:
        self._run.finish()
