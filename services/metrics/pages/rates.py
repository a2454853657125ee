"""How fast files are read: by quarters of an hour of the last day. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

QUARTER = timedelta(minutes=15)
QUARTERS = 96  # of a day
HEIGHT = 72.0  # of the tallest bar, pixels
LEAST = 1.5  # of a bar that stands for anything, pixels


@dataclass(frozen=True)
class Bar:
    begins: datetime
    kept: int
    refused: int
    x: float  # percent of the width
    y: float  # pixels from above, of the kept ones' part, which stands on that of the refused ones
    height: float
    below: float  # height of the refused ones' part


@dataclass(frozen=True)
class Rates:
    a_minute_in_hour: float  # files, the mean of the last hour
    a_minute_in_day: float
    bars: tuple[Bar, ...]  # one for each quarter of an hour, the oldest first

    @property
    def read(self) -> int:
        """Files, in the last day."""
        return sum(bar.kept + bar.refused for bar in self.bars)

    @property
    def most(self) -> int:
        """Files, in the quarter of an hour with the most."""
        return max((bar.kept + bar.refused for bar in self.bars), default=0)

    @classmethod
    def of(cls, rows: Sequence[Any], now: datetime) -> "Rates":
        """From rows of `ingest_rates` and the database's time."""
        by_quarter = {row.quarter: row for row in rows}
        minutes = now.minute % 15
        last = now.replace(minute=now.minute - minutes, second=0, microsecond=0)
        most = max((row.kept + row.refused for row in rows), default=0) or 1
        bars = []
        for place in range(QUARTERS):
            begins = last - QUARTER * (QUARTERS - 1 - place)
            row = by_quarter.get(begins)
            kept, refused = (row.kept, row.refused) if row else (0, 0)
            height, below = (max(LEAST, HEIGHT * part / most) if part else 0.0 for part in (kept, refused))
            y = HEIGHT - height - below
            bars.append(Bar(begins, kept, refused, 100 * place / QUARTERS, y, height, below))
        return cls(
            a_minute_in_hour=sum(row.last_hour or 0 for row in rows) / 60,
            a_minute_in_day=sum(row.kept + row.refused for row in rows) / (24 * 60),
            bars=tuple(bars),
        )
