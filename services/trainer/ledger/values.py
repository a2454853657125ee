"""What the ledger hands out: a lease, an adapter, a round and its end."""

from dataclasses import dataclass

from services.core.models import Json, RoundState
from services.trainer.recipes.recipe import Recipe
from services.trainer.selection.held_out import HeldOut

LEASE_VARIABLE = "RATCHET_LEASE"  # the fencing token, handed to the child in its environment
ANY_NUMBER_VARIABLE = "RATCHET_ANY_NUMBER"  # set for the child: a round may begin with nothing new


@dataclass(frozen=True)
class Lease:
    """The right to train a track. The token grows with every lease: an older one commits nothing."""

    track: str
    token: int


@dataclass(frozen=True)
class Adapter:
    adapter_id: int
    directory: str  # below the track's folder
    manifest: Json
    canary: Json | None = None  # what it found after promotion; None: it was not asked yet


@dataclass(frozen=True)
class Round:
    round_id: int
    number: int
    attempt: int
    parent: Adapter | None  # the champion it continues from
    snapshot_hash: str
    recipe: Recipe  # as it was when the round was opened
    held_out: HeldOut | None = None  # what it is judged by; None: it was opened by an older version

    @property
    def name(self) -> str:
        return f"round-{self.number:04}"


@dataclass(frozen=True)
class Closing:
    """How a round was closed in the end."""

    state: RoundState
    reason: str
