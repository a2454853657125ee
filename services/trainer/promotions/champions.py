"""The moves of a track's champion.

A move is one transaction under the lock of the track's row, which the commit of a round takes too. A move by
hand closes a round that continues from another champion: its candidate cannot be compared any more. Then
`current` follows, then `trained` (`settle_trained`); a crash between them is put right by the daemon.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.core.db import Database, Transaction, as_json
from services.core.errors import PromotionError, PublishError
from services.core.models import RoundState
from services.trainer import publish
from services.trainer.promotions import rows
from services.trainer.promotions.line import MOVES, By, Kind, Line, Published


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
            return rows.read(tx, self._track)

    def promote(self, name: str, by: By) -> Moved:
        """Make a published adapter the champion, whose files are all there and unchanged."""
        present = self.line()
        target = present.acceptable(name, self._track)
        publish.verify_sealed(self._dir / target.directory)
        return self._move([(Kind.PROMOTED, target)], by, present)

    def roll_back(self, by: By, to: str | None = None) -> Moved:
        """Back to an earlier champion: the one before, or the one named, `base` for none."""
        present = self.line()
        target = present.earlier_champion(to, self._track)
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
            rows.hold(tx, self._track)
            champion = tx.one("champion", track=self._track)
            return publish.follow(self._dir, None if champion is None else champion.directory)

    def settle_trained(self) -> None:
        """Let `trained`, and with it the backlog, follow the champion."""
        with self._database.transaction() as tx:
            rows.hold(tx, self._track)
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
            rows.hold(tx, self._track, by.token)
            if (present := rows.read(tx, self._track)) != decided_on:
                raise PromotionError(f"the champion of {self._track} was moved at this moment: look again")
            mark(tx)
            before = after = present.champion
            for kind, adapter in moves:
                if kind in MOVES and adapter == after:
                    raise PromotionError(f"{_name(after)} is the champion of {self._track} already")
                rows.record(tx, self._track, kind, None if adapter is None else adapter.adapter_id, by)
                after = adapter if kind in MOVES else after
            closed = None if after == before else _close_stale_round(tx, self._track, after, by)
            moved = Moved(tuple(kind for kind, _ in moves), _directory(before), _directory(after), closed)
            self._with_it(tx, moved)
        self.follow()
        return moved


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
