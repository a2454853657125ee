"""A verdict of the gate for a person: each condition in words, and its interval against what was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.core.models import Json
from services.metrics.chart import Linear
from services.metrics.document import is_figure

LEFT, RIGHT = 6.0, 94.0  # percent of the width that values lie between
NAMES = {
    "measured": "Could be measured",
    "code": "Better on this code",
    "tasks": "Solves more of the held-out tasks",
    "general": "No worse elsewhere",
    "planted": "Gives up no planted secret",
}


@dataclass(frozen=True)
class Interval:
    """A figure with its confidence bounds and the margin that its lower one must be above; all in `unit`."""

    title: str
    unit: str  # " %", " points"
    estimate: float
    low: float
    high: float | None  # None: bounded below only
    margin: float
    passed: bool
    at: Mapping[str, float]  # name of each of these, and zero → percent of the width

    @property
    def words(self) -> str:
        """The same, for who does not see it."""
        upper = "" if self.high is None else f" to {self.signed(self.high)}"
        beyond = "above" if self.passed else "not above"
        return (
            f"{self.title}: {self.signed(self.estimate)}, at least {self.signed(self.low)}{upper};"
            f" the lower bound is {beyond} the {self.signed(self.margin)} that is asked"
        )

    def signed(self, value: float) -> str:
        """With a true minus sign: −0.31 %."""
        return f"{value:+.2f}{self.unit}".replace("-", "−")


@dataclass(frozen=True)
class Condition:
    name: str
    passed: bool
    words: str
    interval: Interval | None = None


@dataclass(frozen=True)
class Verdict:
    promoted: bool
    reason: str
    conditions: tuple[Condition, ...]
    notes: tuple[str, ...]
    planted: Json | None  # figures of services/trainer/gate/planted.py
    bits: tuple[tuple[str, float], ...]  # base, champion, candidate: bits per byte of held-out code
    rates: tuple[tuple[str, float], ...] = ()  # the same: share of the held-out tasks that are solved


def verdict(told: Json | None, recipe: Json) -> Verdict | None:
    """From a round's `verdict` and the recipe that it was judged by; None while there is none."""
    if not told:
        return None
    checks: Sequence[Json] = told.get("checks") or ()
    of_team = is_of_team(told)
    here = "tasks" if of_team else "code"
    intervals = {here: _here(told, recipe), "general": _general(told.get("general"))}
    conditions = tuple(
        Condition(
            name=NAMES.get(name := str(check["name"]), name),
            passed=bool(check["passed"]),
            words=str(check["words"]),
            interval=intervals.get(name),
        )
        for check in checks
    )
    if not conditions and intervals[here] is not None:  # of an older version
        conditions = (
            Condition(NAMES[here], bool(told.get("promoted")), told.get("reason") or "", intervals[here]),
        )
    return Verdict(
        promoted=bool(told.get("promoted")),
        reason=told.get("reason") or "",
        conditions=conditions,
        notes=tuple(told.get("notes") or ()),
        planted=told.get("planted"),
        bits=_of_models(told.get("bits_per_byte")),
        rates=_of_models(told.get("pass_rates")),
    )


def is_of_team(told: Json) -> bool:
    """Whether it was judged by pass rates of held-out tasks, not by bits per byte of held-out code."""
    return told.get("metric") == "rate"


def _of_models(figures: Json | None) -> tuple[tuple[str, float], ...]:
    found = figures or {}
    names = ("base", "champion", "candidate")
    return tuple((name, found[name]) for name in names if is_figure(found.get(name)))


def _here(told: Json, recipe: Json) -> Interval | None:
    margin = recipe.get("min_improvement") or 0.0
    figures = [told.get(name) for name in ("improvement", "low", "high")]
    if not all(map(is_figure, figures)):
        return None
    estimate, low, high = (100 * float(value) for value in figures if value is not None)
    against = told.get("against") or "base"
    if is_of_team(told):
        title = f"Pass rate gained over the {against}"
        return _interval(title, " points", estimate, low, high, 100 * margin)
    return _interval(f"Bits per byte saved against the {against}", " %", estimate, low, high, 100 * margin)


def _general(told: Json | None) -> Interval | None:
    if not told or not all(is_figure(told.get(name)) for name in ("change", "low", "margin")):
        return None
    unit = " points" if told.get("metric") == "rate" else " %"
    title = f"Change of {told.get('suite')} against the {told.get('against') or 'base'}"
    return _interval(title, unit, 100 * told["change"], 100 * told["low"], None, -100 * told["margin"])


def _interval(
    title: str, unit: str, estimate: float, low: float, high: float | None, margin: float
) -> Interval:
    """`passed` as the gate decides: by the lower bound."""
    known = {"estimate": estimate, "low": low, "margin": margin, "zero": 0.0}
    if high is not None:
        known["high"] = high
    scale = Linear(min(known.values()), max(known.values()), LEFT, RIGHT)
    at = {name: round(scale(value), 2) for name, value in known.items()}
    return Interval(title, unit, estimate, low, high, margin, low > margin, at)
