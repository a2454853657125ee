"""A track's adapters as a tree, drawn beside a list: the newest first, each in a lane above its parent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MOST_LANES = 8  # drawn beside each other; further branches share the last one
BASE = 0  # of an adapter that continues from the base model


@dataclass(frozen=True)
class Row:
    """One adapter's part of the drawing. Lanes are numbered from 0, from the left."""

    adapter_id: int
    lane: int
    through: tuple[int, ...]  # lanes of others that pass by
    from_above: tuple[int, ...]  # lanes of adapters above that continue from this one
    lanes: int  # of the part that is drawn

    @property
    def is_tip(self) -> bool:
        """Whether nothing continues from it."""
        return not self.from_above


def drawn(parents: Sequence[tuple[int, int | None]], first: int = 0, count: int | None = None) -> list[Row]:
    """Of adapters and their parents, children before parents, the rows of `count` adapters from `first` on.

    A lane leads from an adapter down to its parent, the base model when it has none. Of several children
    the lanes meet at the parent.
    """
    waiting: list[int | None] = []  # lane → the adapter that it leads down to; None: it is free
    rows = []
    end = len(parents) if count is None else first + count
    for number, (adapter_id, parent) in enumerate(parents[:end]):
        above = [lane for lane, wanted in enumerate(waiting) if wanted == adapter_id]
        lane = above[0] if above else _free(waiting)
        for each in above:
            waiting[each] = None
        if number >= first:
            through = (each for each, wanted in enumerate(waiting) if wanted is not None and each != lane)
            rows.append(Row(adapter_id, lane, tuple(through), tuple(above), 0))
        waiting[lane] = BASE if parent is None else parent
    lanes = max((1 + max(row.lane, *row.through, 0) for row in rows), default=1)
    return [_narrowed(row, lanes) for row in rows]


def _free(waiting: list[int | None]) -> int:
    if None in waiting:
        return waiting.index(None)
    waiting.append(None)
    return len(waiting) - 1


def _narrowed(row: Row, lanes: int) -> Row:
    def within(lane: int) -> int:
        return min(lane, MOST_LANES - 1)

    return Row(
        row.adapter_id,
        within(row.lane),
        tuple(sorted({within(lane) for lane in row.through})),
        tuple(sorted({within(lane) for lane in row.from_above})),
        min(lanes, MOST_LANES),
    )


@dataclass(frozen=True)
class Move:
    kind: str  # promoted, rolled_back, rejected, pinned, unpinned
    adapter_id: int | None  # None: the base model


@dataclass(frozen=True)
class Standing:
    """What the moves of a track come to."""

    champion: int | None = None
    pinned: bool = False
    marks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # adapter → what is said of it


def standing(moves: Sequence[Move]) -> Standing:
    """From every move of the track, the oldest first; as services/trainer/promotions/line.py reads them.

    Marks: champion, promoted (it was once), rolled back (it was, and was left), rejected, pinned.
    """
    line: list[int | None] = [None]
    left: set[int] = set()
    rejected: set[int] = set()
    pin: Move | None = None
    for move in moves:
        if move.kind == "rolled_back" and move.adapter_id in line:
            at = line.index(move.adapter_id)
            left |= {each for each in line[at + 1 :] if each is not None}
            del line[at + 1 :]
        elif move.kind in ("promoted", "rolled_back"):
            line.append(move.adapter_id)
            left.discard(move.adapter_id or BASE)
        elif move.kind == "rejected" and move.adapter_id is not None:
            rejected.add(move.adapter_id)
        elif move.kind in ("pinned", "unpinned"):
            pin = move if move.kind == "pinned" else None
    champion, once = line[-1], {each for each in line if each is not None}
    marks: dict[int, tuple[str, ...]] = {}
    for adapter in once | left | rejected:
        said = {
            "champion": adapter == champion,
            "promoted": adapter in once and adapter != champion,
            "rolled back": adapter in left,
            "rejected": adapter in rejected,
            "pinned": pin is not None and adapter == pin.adapter_id,
        }
        marks[adapter] = tuple(mark for mark, holds in said.items() if holds)
    return Standing(champion, pin is not None, marks)
