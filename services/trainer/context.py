"""What every stage of a round is given."""

from dataclasses import dataclass
from pathlib import Path

from services.core.settings import Settings
from services.trainer.engine.distributed import Distribution
from services.trainer.heartbeat import Heart
from services.trainer.interruption import Interrupted, Interruption
from services.trainer.ledger import Lease, Ledger, Round
from services.trainer.recipes.recipe import Recipe


@dataclass(frozen=True)
class Books:
    """The ledger, and the right to write into it."""

    ledger: Ledger
    lease: Lease


@dataclass(frozen=True)
class Context:
    """A process's view of its track: where things are, who shares the work, who wants to hear of it."""

    settings: Settings
    recipe: Recipe
    books: Books | None  # the first process's; the others hear of them by `distribution.agree`
    heart: Heart
    interruption: Interruption
    distribution: Distribution

    @property
    def token(self) -> str | None:
        """For the model hub."""
        return self.settings.hub_token

    @property
    def first_books(self) -> Books:
        """To be asked for by the first process only."""
        assert self.books is not None
        return self.books

    @property
    def track_dir(self) -> Path:
        return self.settings.adapters_dir / self.recipe.name

    def folder(self, round_: Round) -> Path:
        """What the round keeps until it is closed."""
        return self.settings.checkpoints_dir / self.recipe.name / round_.name

    def pulse(self) -> None:
        """Called from within a forward or backward pass, which may be given up at any layer.

        Only by a process alone: several would wait for one another in the middle of a pass.
        """
        self.heart.beat()
        if self.distribution.world == 1:
            self.interruption.check()

    def leave_if_asked(self) -> None:
        """Raises Interrupted in every process once any of them was asked to stop."""
        if self.distribution.any(self.interruption.requested):
            raise Interrupted
