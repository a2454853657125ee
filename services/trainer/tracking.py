"""W&B and TensorBoard: both see every figure a round logs, neither can stop a round.

A round that was interrupted goes on in the same curves: W&B's run keeps its id, and a point that was logged
before the interruption is there once.
"""

import json
import logging
import math
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from services.core.settings import Settings
from services.trainer.predictions import Prediction

log = logging.getLogger(__name__)
TABLE = "predictions"  # the name of the table in W&B
HOST = "ratchet"  # instead of this machine's name and the user's
KEPT = "wandb.json"  # among a round's checkpoints: the id of its run in W&B, the last step it was told of


class Tracker(Protocol):
    """One place that figures go to."""

    def log(self, metrics: Mapping[str, float], step: int) -> None: ...
    def table(self, rows: Sequence[Mapping[str, Any]], step: int) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Named:
    """The round, as trackers name it."""

    track: str
    name: str  # round-0001
    config: Mapping[str, Any]  # what it was trained with
    folder: Path  # where its checkpoints are: it lives as long as the round is open


class Trackers:
    """Where the round's figures go besides the database. One that fails is said so and left out."""

    def __init__(self, settings: Settings, round_: Named) -> None:
        self._trackers: dict[str, Tracker] = {}
        folder = settings.logs_dir / "tensorboard" / round_.track / round_.name
        self._open("TensorBoard", lambda: _TensorBoard(folder))
        if wandb_mode(settings) != "disabled":
            self._open("W&B", lambda: _Wandb(settings, round_))

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


def wandb_mode(settings: Settings) -> Literal["online", "offline", "disabled"]:
    """What WANDB_MODE says; otherwise online with a key and offline without one."""
    match settings.wandb_mode:
        case "online" | "offline" | "disabled" as said:
            return said
        case _:
            return "online" if settings.wandb_api_key else "offline"


class _TensorBoard:
    """One file of events each time the round is taken up."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder.mkdir(parents=True, exist_ok=True)
        self._folder = str(folder)
        self._open = SummaryWriter
        self._writer: Any = None

    def _from(self, step: int) -> Any:
        """The writer; what an earlier file has from its first step on is said to be void."""
        if self._writer is None:
            self._writer = self._open(self._folder, purge_step=step)
        return self._writer

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        writer = self._from(step)
        for name, value in metrics.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    def table(self, rows: Sequence[Mapping[str, Any]], step: int) -> None:
        """As text: TensorBoard knows no tables."""
        for row in rows:
            text = "\n\n".join(f"{name}:\n\n```\n{value}\n```" for name, value in row.items())
            self._from(step).add_text(f"{TABLE}/{row['content_id']}", text, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _Wandb:
    """Offline runs lie below LOGS_DIR/wandb; `wandb sync` sends them later.

    Of this machine only the load is sent: no code, no git, no host's or user's name, no command line.
    """

    def __init__(self, settings: Settings, round_: Named) -> None:
        import wandb

        if settings.wandb_api_key is not None:
            os.environ["WANDB_API_KEY"] = settings.wandb_api_key.get_secret_value()
        folder = settings.logs_dir / "wandb"
        folder.mkdir(parents=True, exist_ok=True)
        self._table = wandb.Table
        self._kept = _Kept(round_.folder / KEPT)
        self._run: Any = wandb.init(
            project=settings.wandb_project,
            entity=settings.wandb_entity,
            mode=wandb_mode(settings),
            group=round_.track,
            job_type="round",
            name=f"{round_.track}-{round_.name}",
            id=self._kept.run_id,
            resume="allow",
            config=dict(round_.config),
            dir=str(folder),
            settings=wandb.Settings(
                silent=True, init_timeout=30, console="off", save_code=False, disable_code=True,
                disable_git=True, disable_job_creation=True, x_disable_meta=True, host=HOST, username=HOST,
            ),
        )  # fmt: skip

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        if self._kept.is_news(step):
            self._run.log(dict(metrics), step=step)

    def table(self, rows: Sequence[Mapping[str, Any]], step: int) -> None:
        columns = list(rows[0])
        data = [[row[column] for column in columns] for row in rows]
        if self._kept.is_news(step):
            self._run.log({TABLE: self._table(columns=columns, data=data)}, step=step)

    def close(self) -> None:
        self._run.finish()


class _Kept:
    """What outlives an interruption of the round."""

    def __init__(self, path: Path) -> None:
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            self.run_id, self._step = str(kept["id"]), int(kept["step"])
        except (OSError, ValueError, KeyError, TypeError):
            self.run_id, self._step = secrets.token_hex(8), -1
        self._path = path
        self._write()

    def is_news(self, step: int) -> bool:
        """Whether the run was not told of a later step yet; a round that goes on says the same again."""
        if step < self._step:
            return False
        if step > self._step:
            self._step = step
            self._write()
        return True

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_suffix(".tmp")
        unfinished.write_text(json.dumps({"id": self.run_id, "step": self._step}), encoding="utf-8")
        unfinished.replace(self._path)
