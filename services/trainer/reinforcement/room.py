"""How many tokens a team's passes take at once: as many as the recipe says, fewer where memory runs out."""

import logging
from collections.abc import Callable
from typing import TypeVar

import torch

from services.trainer.reinforcement.team import Team

WITHOUT_GRADIENTS = 4  # times as many tokens at once
LEAST_TOKENS = 256
T = TypeVar("T")
log = logging.getLogger(__name__)


class Room:
    """What was found out about memory stays with the team: the next update begins with it."""

    def __init__(self, team: Team, tokens: int) -> None:
        self._team = team
        team.most_tokens = min(team.most_tokens or tokens, tokens)

    def tokens(self, *, gradients: bool) -> int:
        """In one pass at once; a single longer action is passed alone."""
        assert self._team.most_tokens is not None
        return self._team.most_tokens * (1 if gradients else WITHOUT_GRADIENTS)

    def within(self, work: Callable[[], T]) -> T:
        """What `work` gives, which is begun anew with less at once when memory runs out.

        First what writing keeps is given back, then the tokens are halved, then activations are computed
        again in the backward pass; then torch.OutOfMemoryError is raised.
        """
        while True:
            try:
                return work()
            except torch.OutOfMemoryError:
                if not self._give_way():
                    raise
            torch.cuda.empty_cache()

    def _give_way(self) -> bool:
        if self._team.forget_turns():
            return True
        tokens = self.tokens(gradients=True)
        if tokens // 2 >= LEAST_TOKENS:
            self._team.most_tokens = tokens // 2
            log.warning("out of memory: %d tokens at once from now on", tokens // 2)
            return True
        if not self._team.recomputes:
            self._team.recomputes = True
            log.warning("out of memory: activations are computed again in the backward pass from now on")
            return True
        return False
