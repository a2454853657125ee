"""The moves of a track's champion: promoted, rolled back, rejected, pinned; each an append-only row.

A move is one transaction under the lock of the track's row, which the commit of a round takes too. A move by
hand closes a round that continues from another champion: its candidate cannot be compared any more. Then
`current` follows, then `trained` (`settle_trained`); a crash between them is put right by the daemon.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path

from services.core.db import Database, Transaction, as_json
from services.core.errors import ConfigurationError, LeaseLostError, PromotionError, PublishError
from services.core.models import RoundState
from services.trainer import publish

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


@dataclass(frozen=True)
class Moved:
    """What a move came to."""

    kinds: tuple[Kind, ...]
    before: str | None  # directory of the champion; None: the base model
    champion: str | None
    closed_round: int | None = None  # number of an open round that could not go on


class Champions:
    """One track's moves. Methods raise PromotionError for what cannot be, PublishError for damaged files.

    A move looks at the files of the adapter it goes to in milliseconds (`publish.verify_sealed`);
    `examine` reads them.
    """

    def __init__(
        self,
        database: Database,
        track: str,
        track_dir: Path,
        with_it: Callable[[Transaction, Moved], None] = lambda _tx, _moved: None,
    ) -> None:
        """with_it: called at the end of each move's transaction. Nothing is moved if it raises."""
        self._database = database
        self._track = track
        self._dir = track_dir
        self._with_it = with_it

    def line(self) -> Line:
        with self._database.transaction() as tx:
            return line(tx, self._track)

    def promote(self, name: str, by: By) -> Moved:
        """Make a published adapter the champion, whose files are all there and unchanged."""
        present = self.line()
        target = present.acceptable(name, self._track)
        publish.verify_sealed(self._dir / target.directory)
        return self._move([(Kind.PROMOTED, target)], by, present)

    def roll_back(self, by: By, to: str | None = None) -> Moved:
        """Back to an earlier champion: the one before, or the one named, `base` for none."""
        present = self.line()
        target = _target(present, to, self._track)
        if target is not None:
            publish.verify_sealed(self._dir / target.directory)
        return self._move([(Kind.ROLLED_BACK, target)], by, present)

    def reject(self, name: str, by: By) -> Moved:
        """Never the champion again. If it is the champion, the nearest sound one takes its place first."""
        present = self.line()
        adapter = present.named(name, self._track)
        if adapter.rejected:
            raise PromotionError(f"{name} of {self._track} was rejected before")
        moves: list[tuple[Kind, Published | None]] = [(Kind.REJECTED, adapter)]
        if adapter == present.champion:
            moves.insert(0, (Kind.ROLLED_BACK, self._first_sound(present.earlier)))
        return self._move(moves, by, present)

    def pin(self, by: By, name: str | None = None) -> Moved:
        """Keep the champion, or this adapter, whatever rounds bring; their candidates are published only."""
        present = self.line()
        target = present.champion if name is None else present.acceptable(name, self._track)
        moves: list[tuple[Kind, Published | None]] = [(Kind.PINNED, target)]
        if target is not None and target != present.champion:
            publish.verify_sealed(self._dir / target.directory)
            moves.insert(0, (Kind.PROMOTED, target))
        return self._move(moves, by, present)

    def unpin(self, by: By) -> Moved:
        present = self.line()
        if present.pin is None:
            raise PromotionError(f"the champion of {self._track} is not pinned")
        return self._move([(Kind.UNPINNED, present.champion)], by, present)

    def withdraw(
        self, gone: Collection[int], by: By, mark: Callable[[Transaction], None] = lambda _tx: None
    ) -> Moved:
        """Leave a champion that is `gone`, by its id, for the nearest sound one that is not; and its pin.

        mark: called in the transaction of the move, under the track's lock. Nothing is moved if it raises.
        """
        present = self.line()
        moves: list[tuple[Kind, Published | None]] = []
        if present.champion is not None and present.champion.adapter_id in gone:
            earlier = [each for each in present.earlier if each is None or each.adapter_id not in gone]
            moves.append((Kind.ROLLED_BACK, self._first_sound(earlier)))
            if present.pin is not None and present.pin.adapter_id in gone:
                moves.append((Kind.UNPINNED, moves[0][1]))
        return self._move(moves, by, present, mark)

    def examine(self, by: By) -> Moved | None:
        """Read the champion's files through, which a move only looks at; a damaged champion is rejected.

        None when it is whole, as the base model is.
        """
        champion = self.line().champion
        if champion is None:
            return None
        try:
            publish.verify(self._dir / champion.directory)
        except PublishError as exc:
            return self.reject(champion.directory, By(by.actor, f"its files are damaged: {exc}", by.token))
        return None

    def follow(self) -> bool:
        """Move `current` to the champion under the track's lock; whether it had pointed elsewhere."""
        with self._database.transaction() as tx:
            _hold(tx, self._track)
            champion = tx.one("champion", track=self._track)
            return publish.follow(self._dir, None if champion is None else champion.directory)

    def settle_trained(self) -> None:
        """Let `trained`, and with it the backlog, follow the champion."""
        with self._database.transaction() as tx:
            _hold(tx, self._track)
            tx.execute("without_hurry")
            tx.execute("settle_trained", track=self._track)

    # inside

    def _first_sound(self, earlier: Sequence[Published | None]) -> Published | None:
        """The nearest whose files are whole; the base model needs none."""
        for each in earlier:
            try:
                if each is not None:
                    publish.verify_sealed(self._dir / each.directory)
            except PublishError:
                continue
            return each
        return None

    def _move(
        self,
        moves: Sequence[tuple[Kind, Published | None]],
        by: By,
        decided_on: Line,
        mark: Callable[[Transaction], None] = lambda _tx: None,
    ) -> Moved:
        """Record the moves if nothing was moved since they were decided on, then let `current` follow."""
        with self._database.transaction() as tx:
            _hold(tx, self._track, by.token)
            if (present := line(tx, self._track)) != decided_on:
                raise PromotionError(f"the champion of {self._track} was moved at this moment: look again")
            mark(tx)
            before = after = present.champion
            for kind, adapter in moves:
                if kind in MOVES and adapter == after:
                    raise PromotionError(f"{_name(after)} is the champion of {self._track} already")
                record(tx, self._track, kind, None if adapter is None else adapter.adapter_id, by)
                after = adapter if kind in MOVES else after
            closed = None if after == before else _close_stale_round(tx, self._track, after, by)
            moved = Moved(tuple(kind for kind, _ in moves), _directory(before), _directory(after), closed)
            self._with_it(tx, moved)
        self.follow()
        return moved


def line(tx: Transaction, track: str) -> Line:
    """The track's moves as they stand in this transaction."""
    adapters = (Published(*row) for row in tx.all("published_adapters", track=track))
    moves = (
        Move(Kind(row.kind), row.adapter_id, row.actor, row.reason) for row in tx.all("moves", track=track)
    )
    return Line(tuple(adapters), tuple(moves))


def record(tx: Transaction, track: str, kind: Kind, adapter_id: int | None, by: By) -> None:
    tx.execute(
        "record_move",
        track=track,
        kind=kind,
        adapter_id=adapter_id,
        token=by.token,
        actor=by.actor,
        reason=by.reason,
    )


def _target(present: Line, to: str | None, track: str) -> Published | None:
    """Where a rollback goes."""
    if to == BASE:
        return None
    if to is not None:
        target = present.acceptable(to, track)
        if target not in present.earlier:
            was = "is the champion" if target == present.champion else "was not an earlier champion"
            raise PromotionError(f"{to} of {track} {was}: `ratchet promote {to}` makes it the champion")
        return target
    if present.champion is None:
        raise PromotionError(f"{track} has no champion: nothing to roll back")
    return present.earlier[0]


def _hold(tx: Transaction, track: str, token: int | None = None) -> None:
    """The track's row, locked until the transaction ends."""
    if token is not None:
        if tx.value("hold_token", track=track, token=token) is None:
            raise LeaseLostError(f"another trainer has taken the track {track}")
    elif tx.value("hold_track", track=track) is None:
        known = ", ".join(row.name for row in tx.all("track_names")) or "none yet"
        raise ConfigurationError(f"there is no track {track}; tracks: {known}")


def _close_stale_round(tx: Transaction, track: str, champion: Published | None, by: By) -> int | None:
    """Refuse an open round that does not continue from the champion; its contents are not lost."""
    opened = tx.one("open_round", track=track)
    if opened is None or opened.parent_adapter_id == (None if champion is None else champion.adapter_id):
        return None
    reason = (
        f"the champion was moved to {_name(champion)} by {by.actor} while this round ran:"
        " its candidate continues from another one"
    )
    verdict = as_json({"promoted": False, "reason": reason})
    tx.execute("close_round", round_id=opened.id, state=RoundState.REFUSED, training=None, verdict=verdict)
    return int(opened.number)


def _directory(adapter: Published | None) -> str | None:
    return None if adapter is None else adapter.directory


def _name(adapter: Published | None) -> str:
    return "the base model" if adapter is None else adapter.directory
