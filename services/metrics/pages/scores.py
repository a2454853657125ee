"""The distribution of scores, and what another threshold would admit. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

HIGHEST = 100
HEIGHT, TOP = 160.0, 8.0  # of the tallest bar, and of the space above it, pixels
LEAST = 1.5  # of a bar that stands for anything, pixels


@dataclass(frozen=True)
class Bar:
    score: int
    contents: int
    or_more: int  # contents that score as much or more
    x: str  # percent of the width
    y: str  # pixels from above
    height: str


@dataclass(frozen=True)
class Scores:
    """How many live contents have which score."""

    counts: tuple[int, ...]  # by score, 0 to 100

    @classmethod
    def of(cls, rows: Iterable[Any]) -> "Scores":
        """From rows with a score and a number of contents."""
        counts = [0] * (HIGHEST + 1)
        for row in rows:
            counts[row.score] += row.contents
        return cls(tuple(counts))

    @property
    def total(self) -> int:
        return sum(self.counts)

    def admitted(self, threshold: int) -> int:
        """Contents that score as much or more."""
        return sum(self.counts[threshold:])

    def bars(self) -> list[Bar]:
        """Of the scores that any content has, in order."""
        most, more, found = max(self.counts), self.total, []
        for score, contents in enumerate(self.counts):
            if contents:
                height = max(LEAST, HEIGHT * contents / most)
                y = f"{TOP + HEIGHT - height:.1f}"
                found.append(Bar(score, contents, more, self.place(score), y, f"{height:.1f}"))
            more -= contents
        return found

    @staticmethod
    def place(score: int) -> str:
        """Where the bar of a score begins, percent of the width."""
        return f"{100 * score / (HIGHEST + 1):.3f}"

    def said(self, threshold: int, in_force: int) -> str:
        """What this threshold would do beside the one in force; static/ingest.js says the same."""
        admitted, total = self.admitted(threshold), self.total
        more = admitted - self.admitted(in_force)
        share = (200 * admitted + total) // (2 * total) if total else 0  # rounded half up, as JavaScript does
        of_all = f"{admitted:,} of {total:,} contents ({share} %)"
        if threshold == in_force:
            return f"{threshold} is in force: it admits {of_all}."
        if more == 0:
            return f"{threshold} would admit as many as {in_force} does: {of_all}."
        change = f"{abs(more):,} {'more' if more > 0 else 'fewer'}"
        return f"{threshold} would admit {change} than {in_force} does: {of_all}."
