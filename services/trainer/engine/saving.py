"""Weights, optimizer and training state, saved as a checkpoint by all processes and brought back by all."""

import logging
from collections.abc import Mapping
from pathlib import Path

import torch

from services.trainer import checkpoints
from services.trainer.engine import optimizer as optimizers
from services.trainer.engine.distributed import Distribution
from services.trainer.engine.state import TrainingState, from_json

log = logging.getLogger(__name__)


class Saving:
    """The checkpoints of one round below a folder that every process can read."""

    def __init__(
        self,
        folder: Path,
        parameters: Mapping[str, torch.nn.Parameter],
        optimizer: torch.optim.Optimizer,
        distribution: Distribution,
    ) -> None:
        self._folder = folder
        self._parameters = parameters
        self._optimizer = optimizer
        self._distribution = distribution
        splits = distribution.splits
        self._part = f"{distribution.rank}-of-{distribution.world}" if splits else "all"

    def save(self, state: TrainingState) -> None:
        """What is trained and how far it is; the best, the newest and the one before it are kept."""
        moments, numbers = optimizers.state_of(self._optimizer, self._parameters)
        if self._distribution.splits or self._distribution.is_first:
            groups = {"weights": self._parameters, "moments": moments}
            checkpoints.write(self._folder, state.step, groups, self._part)
        self._distribution.any(False)  # wait until all have written
        if self._distribution.is_first:
            checkpoints.finish(self._folder, state.step, {"training": state.as_json(), "optimizer": numbers})
            checkpoints.prune(self._folder, state.stopper.best_step)
        self._distribution.any(False)

    def restore_newest(self) -> TrainingState | None:
        """Back to the newest valid checkpoint; None when there is none that can be gone on from."""
        path = self._distribution.agree(lambda: checkpoints.newest_valid(self._folder))
        if path is None:
            return None
        try:
            saved = checkpoints.read(path, self._part)
            state = from_json(saved.state["training"])
        except (OSError, ValueError, KeyError, TypeError) as exc:
            log.warning("%s is of another version of Ratchet (%s): the training begins anew", path, exc)
            return None
        if not saved.weights:
            log.warning("%s has no part %s: another number of processes made it; anew", path, self._part)
            return None
        self._load_weights(saved.weights)
        optimizers.restore(self._optimizer, self._parameters, saved.moments, saved.state["optimizer"])
        return state

    def restore_weights(self, step: int) -> bool:
        """The weights of an earlier step. False: they are damaged, it was said, those of now stay."""
        path = checkpoints.path_of(self._folder, step)
        if not self._distribution.agree(lambda: checkpoints.is_valid(path)):
            log.warning("the best checkpoint %s is damaged: the last state is the candidate", path)
            return False
        self._load_weights(checkpoints.read(path, self._part).weights)
        return True

    @torch.no_grad()
    def _load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        for name, parameter in self._parameters.items():
            parameter.copy_(weights[name])
        self._distribution.weights_changed()
