"""Two adapters side by side: figures, and of each suite the items that one solves and the other does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from services.core.models import Json
from services.metrics.document import is_figure

SHOWN = 12  # items of a suite whose answers are shown; the others are counted
TASKS = "tasks"  # the suite of a team's held-out tasks
RATES = ("pass@1", "exact_match")  # of one kind of suite each; 1 is solved
LOWER_IS_BETTER = ("bits_per_byte", "perplexity", "nats")


@dataclass(frozen=True)
class Figure:
    """One figure of both; None where one was not measured."""

    suite: str
    name: str
    a: float | None
    b: float | None
    comparable: bool  # both were measured on the same version of the suite

    @property
    def better(self) -> str | None:
        """`a`, `b`, or neither."""
        if self.a is None or self.b is None or not self.comparable or self.a == self.b:
            return None
        return "a" if (self.a < self.b) == self.name.endswith(LOWER_IS_BETTER) else "b"


@dataclass(frozen=True)
class Item:
    suite: str
    metric: str
    key: str  # SHA-256 of the item
    name: str
    a: float
    b: float


@dataclass(frozen=True)
class Suite:
    """The items of a suite that both were measured on, by one metric."""

    name: str
    metric: str
    items: int
    same: int
    only_a: tuple[Item, ...]  # those that a does better, the widest apart first
    only_b: tuple[Item, ...]

    @property
    def is_rate(self) -> bool:
        """Whether an item is solved or not, rather than solved in some of several samples."""
        values = {value for item in (*self.only_a, *self.only_b) for value in (item.a, item.b)}
        return self.metric in RATES and values <= {0.0, 1.0}

    @property
    def shown(self) -> tuple[Item, ...]:
        return (*self.only_a[:SHOWN], *self.only_b[:SHOWN])


@dataclass(frozen=True)
class Tasks:
    """Held-out tasks that two teams were both measured on, and the shares of them that they solve."""

    tasks: int
    a: float
    b: float
    a_better: int
    b_better: int


@dataclass(frozen=True)
class Answers:
    """What both wrote for an item, and what was expected where one text is."""

    item: Item
    a: str | None
    b: str | None
    expected: str | None
    results: tuple[str, str]  # what running them said: passed, wrong answer, …


def figures(a: Sequence[Any], b: Sequence[Any]) -> list[Figure]:
    """From rows of `api_suites`: every figure of the two candidates, by suite and name."""
    old, new = _candidates(a), _candidates(b)
    made = []
    for suite in sorted(old.keys() | new.keys()):
        (one, one_version), (two, two_version) = old.get(suite, ({}, None)), new.get(suite, ({}, None))
        for name in sorted(one.keys() | two.keys()):
            same = None in (one_version, two_version) or one_version == two_version
            made.append(Figure(suite, name, _finite(one.get(name)), _finite(two.get(name)), same))
    return made


def tasks(rows: Sequence[Any]) -> Tasks | None:
    """From rows of `page_shared_items`; None where they have no task in common."""
    pairs = [(row.a, row.b) for row in rows if row.suite == TASKS]
    if not pairs:
        return None
    of_a, of_b = zip(*pairs, strict=True)
    return Tasks(
        len(pairs), fmean(of_a), fmean(of_b), sum(a > b for a, b in pairs), sum(b > a for a, b in pairs)
    )


def suites(rows: Sequence[Any]) -> list[Suite]:
    """From rows of `page_shared_items`, by suite and metric.

    Where an exact metric tells what is solved, how alike the others are (edit_similarity) is left out.
    """
    grouped: dict[tuple[str, str], list[Item]] = {}
    for row in rows:
        item = Item(row.suite, row.metric, row.item, row.name, row.a, row.b)
        grouped.setdefault((row.suite, row.metric), []).append(item)
    exact = {suite for suite, metric in grouped if metric in RATES}
    return [
        _suite(suite, metric, items)
        for (suite, metric), items in grouped.items()
        if metric in RATES or suite not in exact
    ]


def answers(shown: Sequence[Item], rows: Sequence[Any], a: int, b: int) -> Mapping[tuple[str, str], Answers]:
    """Suite and item → the answers of rounds `a` and `b`; from rows of `page_answers`."""
    written = {(row.round_id, row.suite, row.item, row.metric): row for row in rows}
    found = {}
    for item in shown:
        one, two = (written.get((round_id, item.suite, item.key, item.metric)) for round_id in (a, b))
        if one is not None or two is not None:
            texts = [None if row is None else row.written for row in (one, two)]
            expected = next(
                (row.answer for row in (one, two) if row is not None and row.answer is not None), None
            )
            told = (_results(one), _results(two))
            found[item.suite, item.key] = Answers(item, texts[0], texts[1], expected, told)
    return found


def _suite(suite: str, metric: str, items: Sequence[Item]) -> Suite:
    sign = -1 if metric in LOWER_IS_BETTER else 1
    by_gap = sorted(items, key=lambda item: (-abs(item.a - item.b), item.name))
    return Suite(
        name=suite,
        metric=metric,
        items=len(items),
        same=sum(item.a == item.b for item in items),
        only_a=tuple(item for item in by_gap if sign * (item.a - item.b) > 0),
        only_b=tuple(item for item in by_gap if sign * (item.b - item.a) > 0),
    )


def _candidates(rows: Sequence[Any]) -> dict[str, tuple[Json, str]]:
    return {row.suite: (row.figures, row.version) for row in rows if row.subject == "candidate"}


def _finite(value: Any) -> float | None:
    return float(value) if is_figure(value) else None


def _results(row: Any) -> str:
    """`passed 3, wrong answer 1`."""
    if row is None or not row.results:
        return ""
    return ", ".join(f"{str(result).replace('_', ' ')} {count}" for result, count in row.results.items())
