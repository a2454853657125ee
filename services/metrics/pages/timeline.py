"""A track's newest rounds as bars in a row: how long each took and what came of it. Geometry only."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.core.models import RoundState
from services.metrics.pages.words import duration, moment

HEIGHT = 72.0  # of the tallest bar, pixels
LEAST = 3.0  # of a bar, pixels: a round that took seconds is to be seen
FEWEST_SLOTS = 24  # two rounds are no two walls
GAP = 0.2  # of a slot
TWO_DIGITS = 99
NAMED, NAMED_OF_MANY = 5, 10  # every so many a round's number stands below it, where not all have room
MARKS = {
    RoundState.PROMOTED: "✓",
    RoundState.REFUSED: "×",
    RoundState.FAILED: "!",
    RoundState.OPEN: "…",
}  # colour is not all that tells them apart


@dataclass(frozen=True)
class Bar:
    number: int
    state: str
    mark: str
    label: str  # what a screen reader says
    x: float  # percent of the width
    width: float
    centre: float
    y: float  # pixels from above
    height: float
    named: bool  # whether there is room for its number


@dataclass(frozen=True)
class Timeline:
    track: str
    bars: tuple[Bar, ...]
    tallest: str  # how long the longest of them took
    first: datetime
    last: datetime
    counts: tuple[tuple[str, int], ...]  # state and how many

    @property
    def is_dense(self) -> bool:
        return len(self.bars) > FEWEST_SLOTS


def timelines(rows: Sequence[Any], now: datetime) -> dict[str, Timeline]:
    """Of each track, from rows of `page_timeline`: oldest first."""
    by_track: dict[str, list[Any]] = {}
    for row in rows:
        by_track.setdefault(row.track, []).append(row)
    return {track: timeline(track, of_track, now) for track, of_track in by_track.items()}


def timeline(track: str, rows: Sequence[Any], now: datetime) -> Timeline:
    """At least one row. A round that runs lasts until now."""
    seconds = [max(0.0, ((row.closed_at or now) - row.opened_at).total_seconds()) for row in rows]
    longest = max(1.0, *seconds)
    slot = 100 / max(FEWEST_SLOTS, len(rows))
    bars = tuple(
        _bar(row, took, longest, slot, place, _is_named(row.number, len(rows), rows[-1].number))
        for place, (row, took) in enumerate(zip(rows, seconds, strict=True))
    )
    counted = [(str(state), sum(row.state == state for row in rows)) for state in RoundState]
    return Timeline(
        track=track,
        bars=bars,
        tallest=duration(longest),
        first=rows[0].opened_at,
        last=rows[-1].opened_at,
        counts=tuple((state, count) for state, count in counted if count),
    )


def _is_named(number: int, shown: int, newest: int) -> bool:
    if shown > FEWEST_SLOTS:
        return number == 1 or number % NAMED_OF_MANY == 0
    return newest <= TWO_DIGITS or number % NAMED == 0


def _bar(row: Any, seconds: float, longest: float, slot: float, place: int, named: bool) -> Bar:
    height = max(LEAST, HEIGHT * seconds / longest)
    withdrawn = ", taken back by a forgetting" if row.withdrawn_by is not None else ""
    took = "so far" if row.state == RoundState.OPEN else "long"
    return Bar(
        number=row.number,
        state=row.state,
        mark=MARKS.get(row.state, "?"),
        label=f"Round {row.number}, {row.state}{withdrawn}: {duration(seconds)} {took},"
        f" begun {moment(row.opened_at)}",
        x=round(slot * (place + GAP / 2), 3),
        width=round(slot * (1 - GAP), 3),
        centre=round(slot * (place + 0.5), 3),
        y=round(HEIGHT - height, 1),
        height=round(height, 1),
        named=named,
    )
