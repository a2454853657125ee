"""A team, its optimizers and the state of its training, saved as a checkpoint and brought back.

A checkpoint has a folder a role as PEFT writes it, `critic` beside them, the optimizers' moments and
`state.json`; it is there whole or not at all (`services.trainer.checkpoints`). Generators are not saved:
everything random in an iteration follows from seed, round and number of the iteration.
"""

import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from services.trainer import checkpoints
from services.trainer.reinforcement.state import State, from_json

if TYPE_CHECKING:
    from services.trainer.reinforcement.optimizers import Optimizers
    from services.trainer.reinforcement.team import Team

PART = "all"  # one process saves all of it
log = logging.getLogger(__name__)


class Saving:
    """The checkpoints of one round below a folder."""

    def __init__(self, folder: Path, team: "Team", optimizers: "Optimizers") -> None:
        self._folder = folder
        self._team = team
        self._optimizers = optimizers

    def save(self, state: State) -> None:
        """The best, the newest and the one before it are kept. OSError when the disk is full."""
        unfinished = checkpoints.unfinished_path(self._folder, state.step)
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        self._team.save(unfinished)
        moments, numbers = self._optimizers.state()
        checkpoints.write(self._folder, state.step, {"moments": moments}, PART)
        checkpoints.finish(self._folder, state.step, {"training": state.as_json(), "optimizer": numbers})
        checkpoints.prune(self._folder, state.stopper.best_step)

    def restore_newest(self) -> State | None:
        """Back to the newest valid checkpoint; None when there is none that can be gone on from."""
        path = checkpoints.newest_valid(self._folder)
        if path is None:
            return None
        saved = checkpoints.read(path, PART)
        try:
            state = from_json(saved.state["training"])
        except (KeyError, TypeError) as exc:
            log.warning("%s is of another version of Ratchet (%s): the training begins anew", path, exc)
            return None
        self._team.restore(path)
        self._optimizers.restore(saved.moments, saved.state["optimizer"])
        return state

    def restore_weights(self, step: int) -> State | None:
        """The team of an earlier iteration, and the state of then. None: damaged, that of now stays."""
        path = checkpoints.path_of(self._folder, step)
        if not checkpoints.is_valid(path):
            log.warning("the best checkpoint %s is damaged: the last state is the candidate", path)
            return None
        self._team.restore(path)
        return from_json(checkpoints.read(path, PART).state["training"])
