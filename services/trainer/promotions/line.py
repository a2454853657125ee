"""A track's line of champions: what its moves come to, and who may be the next. Pure."""

import logging
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from services.core.errors import PromotionError

log = logging.getLogger(__name__)
BASE = "base"  # what the model without any adapter is called where an adapter is asked for


class Kind(StrEnum):
    PROMOTED = "promoted"  # it became the champion
    ROLLED_BACK = "rolled_back"  # an earlier champion, or the base model, is the champion again
    REJECTED = "rejected"  # it may never be the champion again
    PINNED = "pinned"  # rounds do not move the champion from now on
    UNPINNED = "unpinned"


MOVES = (Kind.PROMOTED, Kind.ROLLED_BACK)  # the others are words about a champion


@dataclass(frozen=True)
class By:
    """Who moves the champion, and why; the trainer's own moves are fenced by its lease's token."""

    actor: str
    reason: str
    token: int | None = None


@dataclass(frozen=True)
class Published:
    adapter_id: int
    directory: str
    rejected: bool = False
    taint: str | None = None  # it has learned what was forgotten since: the policy, refuse or warn

    @property
    def barred(self) -> bool:
        return self.rejected or self.taint == "refuse"


@dataclass(frozen=True)
class Move:
    kind: Kind
    adapter_id: int | None
    actor: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Line:
    """A track's adapters and every move of its champion, oldest first."""

    adapters: tuple[Published, ...]
    moves: tuple[Move, ...] = ()

    def champions(self) -> list[int | None]:
        """The champions that one may go back to, oldest first: the base model, …, the present one."""
        line: list[int | None] = [None]
        for move in self.moves:
            if move.kind is Kind.ROLLED_BACK and move.adapter_id in line:
                del line[line.index(move.adapter_id) + 1 :]
            elif move.kind in MOVES:
                line.append(move.adapter_id)
        return line

    @property
    def champion(self) -> Published | None:
        return self.of(self.champions()[-1])

    @property
    def earlier(self) -> list[Published | None]:
        """What a rollback may go to, the nearest first; None is the base model."""
        present = self.champions()[-1]
        line = [each for each in self.champions()[:-1] if each != present]
        found = [self.of(each) for each in reversed(line)]
        return [each for each in found if each is None or not each.barred]

    @property
    def pin(self) -> Move | None:
        """The move that pinned the champion, while it holds."""
        moves = [move for move in self.moves if move.kind in (Kind.PINNED, Kind.UNPINNED)]
        return moves[-1] if moves and moves[-1].kind is Kind.PINNED else None

    def of(self, adapter_id: int | None) -> Published | None:
        return next((each for each in self.adapters if each.adapter_id == adapter_id), None)

    def named(self, name: str, track: str) -> Published:
        """Raises PromotionError, with the nearest names, when the track has no such adapter."""
        found = next((each for each in self.adapters if each.directory == name), None)
        if found is None:
            names = [each.directory for each in self.adapters]
            near = get_close_matches(name, names, n=3, cutoff=0.5) or names[-3:]
            known = f"did you mean {', '.join(near)}?" if near else "no round of it was published yet"
            raise PromotionError(f"the track {track} has no adapter {name}: {known}")
        return found

    def acceptable(self, name: str, track: str) -> Published:
        """One that may be the champion.

        Raises PromotionError for one that is not there, was rejected, or learned what was forgotten since.
        """
        adapter = self.named(name, track)
        if adapter.rejected:
            raise PromotionError(f"{name} of {track} was rejected: it can never be the champion again")
        if adapter.taint is not None:
            said = f"{name} of {track} has learned what was forgotten since (`ratchet forgotten` says what)"
            if adapter.barred:
                raise PromotionError(f"{said}: it cannot be the champion")
            log.warning("%s", said)
        return adapter

    def earlier_champion(self, to: str | None, track: str) -> Published | None:
        """Where a rollback goes: to the one named, BASE for none, or to the nearest that may be it.

        Raises PromotionError for one that was no earlier champion, and where there is no champion.
        """
        if to == BASE:
            return None
        if to is not None:
            target = self.acceptable(to, track)
            if target not in self.earlier:
                was = "is the champion" if target == self.champion else "was not an earlier champion"
                raise PromotionError(f"{to} of {track} {was}: `ratchet promote {to}` makes it the champion")
            return target
        if self.champion is None:
            raise PromotionError(f"{track} has no champion: nothing to roll back")
        return self.earlier[0]
