"""Who writes what the agents say: the model in this process, or an engine that was brought for it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from services.trainer.generation import Completion, Request, Turns, complete
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement

if TYPE_CHECKING:
    from services.trainer.reinforcement.team import Team

OnRow = Callable[[tuple[int, int], Completion], None]
OnDone = Callable[[int, int], None]


class Backend(Protocol):
    """Writes for one role at a time."""

    def begin(self) -> None:
        """A rollout begins: the team's weights may be others than in the one before."""

    def write(
        self,
        role: str,
        prompts: Sequence[Sequence[int]],
        counts: Sequence[int],
        request: Request,
        *,
        on_row: OnRow,
        on_done: OnDone,
    ) -> list[list[Completion]]:
        """So many completions of each prompt by the role's adapter, as `generation.complete` has them."""


def backend_of(team: "Team", settings: Reinforcement, recipe: Recipe) -> Backend:
    """Who writes for the team by the recipe. Raises ConfigurationError where that one is not installed."""
    if settings.writer == "own":
        return OwnWriter(team)
    from services.trainer.reinforcement.vllm_backend import VllmWriter

    return VllmWriter.of(team, settings, recipe)


class OwnWriter:
    """The team's own model, which `generation` writes with."""

    def __init__(self, team: "Team", memory_bytes: int | None = None) -> None:
        """memory_bytes: for keys, values and logits, as `generation.complete` has it."""
        self._team, self._memory_bytes = team, memory_bytes

    def begin(self) -> None:
        """Nothing to do: the weights are those that are trained."""

    def write(
        self,
        role: str,
        prompts: Sequence[Sequence[int]],
        counts: Sequence[int],
        request: Request,
        *,
        on_row: OnRow,
        on_done: OnDone,
    ) -> list[list[Completion]]:
        """See `Backend`."""
        model, tokenizer = self._team.model, self._team.tokenizer
        with self._as(role):
            return complete(
                model, tokenizer, prompts, request,
                counts=counts, on_row=on_row, on_done=on_done, memory_bytes=self._memory_bytes,
                turns=self._turns(role),
            )  # fmt: skip

    def _as(self, role: str) -> AbstractContextManager[None]:
        return self._team.acting(role)

    def _turns(self, role: str) -> Turns:
        return self._team.turns_of(role)


class AtRest(OwnWriter):
    """The base as it is without the team: what every role is written by, with the adapters off."""

    def _as(self, role: str) -> AbstractContextManager[None]:  # noqa: ARG002  whoever it is
        return self._team.at_rest()

    def _turns(self, role: str) -> Turns:  # noqa: ARG002
        return self._team.turns_of(None)
