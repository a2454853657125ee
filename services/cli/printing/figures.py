"""Figures and moments as every command writes them: 12.3k, +2.31 %, 1:02:05, 2026-01-31 08:00."""

from datetime import datetime
from typing import Any

from services.metrics.document import is_figure

RATE = "rate"  # metric of a verdict on pass rates


def moment(at: datetime | None) -> str:
    return "–" if at is None else f"{at:%Y-%m-%d %H:%M}"


def took(begun: datetime, ended: datetime | None) -> str:
    return "runs" if ended is None else clock((ended - begun).total_seconds())


def gain(improvement: Any, metric: str | None = None) -> str:
    """Relative fall of bits per byte, +2.31 %; of a team the rise of its pass rate, +11.3 pts."""
    if not is_figure(improvement):
        return "–"
    return f"{100 * improvement:+.1f} pts" if metric == RATE else f"{100 * improvement:+.2f} %"


def short(number: Any) -> str:
    """A count in three digits: 950, 12.3k, 1.2M."""
    if not is_figure(number):
        return "–"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"


def clock(seconds: Any) -> str:
    """Seconds as 2:05 or 1:02:05."""
    minutes, rest = divmod(round(float(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
