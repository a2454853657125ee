"""What the pages of rounds make of rows: bars, curves, shares, differences, intervals."""

import math
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.models import ContentRole, RoundState
from services.metrics.pages import composition, curves, timeline, verdicts
from services.metrics.pages.configuration import Difference, differences, settings

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
JUDGED = {
    "against": "champion",
    "improvement": 0.021,
    "low": 0.012,
    "high": 0.03,
    "promoted": True,
    "reason": "r",
}


def round_row(number: int, seconds: float, state: str = "promoted") -> SimpleNamespace:
    opened = NOW - timedelta(days=9) + timedelta(hours=number)
    closed = None if state == "open" else opened + timedelta(seconds=seconds)
    return SimpleNamespace(
        track="demo", number=number, state=state, opened_at=opened, closed_at=closed, withdrawn_by=None
    )


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60))
def test_bars_stay_inside_and_grow_with_time(seconds: list[float]) -> None:
    """No bar leaves the drawing or touches another; a longer round has no lower bar."""
    line = timeline.timeline("demo", [round_row(at, took) for at, took in enumerate(seconds, 1)], NOW)
    assert all(bar.x >= 0 and bar.x + bar.width <= 100.01 for bar in line.bars)
    assert all(one.x + one.width <= two.x + 0.01 for one, two in zip(line.bars, line.bars[1:], strict=False))
    assert all(
        bar.y >= 0 and math.isclose(bar.y + bar.height, timeline.HEIGHT, abs_tol=0.11) for bar in line.bars
    )
    by_time = [
        bar.height for _, bar in sorted(zip(seconds, line.bars, strict=True), key=lambda each: each[0])
    ]
    assert by_time == sorted(by_time)


def test_a_round_under_way_lasts_until_now() -> None:
    line = timeline.timeline("demo", [round_row(1, 60, "open")], NOW)
    assert "8 d 23 h so far" in line.bars[0].label


def test_outcomes_are_told_apart_without_colour() -> None:
    states = [str(state) for state in RoundState]
    line = timeline.timeline("demo", [round_row(at, 60, state) for at, state in enumerate(states)], NOW)
    assert len({bar.mark for bar in line.bars}) == len(states)


def logged(step: int, kind: str = "train", **metrics: Any) -> SimpleNamespace:
    return SimpleNamespace(step=step, kind=kind, metrics=metrics)


def test_a_curve_has_gaps_where_nothing_finite_was_logged() -> None:
    """Null in the JSON, no point in the drawing."""
    rows = [logged(1, memory_bytes=2**30), logged(2, memory_bytes=None), logged(3, loss=1.0)]
    figure = curves.BY_NAME["memory"]
    assert curves.as_json(rows, figure)["series"][0]["points"] == [1.0, None, None]
    assert curves.points(rows, figure) == [(1, 1.0)]


def test_only_what_was_logged_is_drawn() -> None:
    drawn = curves.charts([logged(1, loss=2.0), logged(2, loss=1.5), logged(2, "eval", bits_per_byte=0.7)])
    assert [figure.name for figure, _ in drawn] == ["loss", "bits"]


def part(
    role: str, language: str, contents: int, of_role: int, source: str | None = "one"
) -> SimpleNamespace:
    stride = 1 if of_role < 100_000 else 25_000
    return SimpleNamespace(
        role=role, of_role=of_role, stride=stride, language=language, source=source, contents=contents
    )


@given(st.lists(st.tuples(st.sampled_from(list(ContentRole)), st.integers(1, 500)), min_size=1, max_size=30))
def test_languages_add_up_to_the_round(drawn: list[tuple[ContentRole, int]]) -> None:
    """However many there are, the bars' contents are the round's, up to rounding; no bar leaves its width."""
    of_role = {role: sum(each for other, each in drawn if other is role) for role, _ in drawn}
    rows = [part(str(role), f"l{at}", count, of_role[role]) for at, (role, count) in enumerate(drawn)]
    made = composition.composition(rows)
    assert made is not None
    assert made.roles.total == sum(of_role.values())
    assert abs(sum(line.total for line in made.languages) - made.roles.total) <= len(made.languages)
    assert len(made.languages) <= composition.SHOWN + 1
    assert all(each.x + each.width <= 100.1 for line in made.languages for each in line.segments)
    assert not made.estimated


def test_a_draw_stands_for_all() -> None:
    """Of 100,000 contents 4 were drawn: each stands for 25,000, and that is said."""
    made = composition.composition(
        [part("train", "python", 3, 100_000), part("train", "rust", 1, 100_000, source=None)]
    )
    assert made is not None
    assert [(line.name, line.total) for line in made.languages] == [("python", 75_000), ("rust", 25_000)]
    assert made.sources[1].name == composition.UNKNOWN
    assert made.estimated


def test_differences_of_recipes_are_named_by_field() -> None:
    before = {"lora_r": 8, "weights": {"rust": 1.0, "go": 2.0}, "old": True, "same": None}
    after = {"lora_r": 16, "weights": {"rust": 0.5, "go": 2.0}, "new": [1, 2], "same": None}
    assert differences(before, after) == [
        Difference("lora_r", "8", "16"),
        Difference("new", "not there", "1, 2"),
        Difference("old", "yes", "not there"),
        Difference("weights.rust", "1", "0.5"),
    ]
    assert differences(before, before) == []
    assert {each.name for each in settings(before)} == {"lora_r", "weights.rust", "weights.go", "old", "same"}


def test_an_interval_is_drawn_against_what_was_asked() -> None:
    """Left to right: what was asked, the lower bound, the estimate, the upper bound."""
    checks = [{"name": "code", "passed": True, "words": "better"}]
    told = verdicts.verdict({**JUDGED, "checks": checks}, {"min_improvement": 0.005})
    assert told is not None
    (condition,) = told.conditions
    found = condition.interval
    assert found is not None
    assert found.at["zero"] < found.at["margin"] < found.at["low"] < found.at["estimate"] < found.at["high"]
    assert found.passed
    assert "at least +1.20 % to +3.00 %" in found.words


@given(*(st.floats(-0.5, 0.5) for _ in range(4)))
def test_no_mark_of_an_interval_leaves_its_axis(
    estimate: float, low: float, high: float, margin: float
) -> None:
    told = verdicts.verdict(
        {**JUDGED, "improvement": estimate, "low": low, "high": high}, {"min_improvement": margin}
    )
    assert told is not None
    interval = told.conditions[0].interval
    assert interval is not None
    assert all(verdicts.LEFT - 0.01 <= at <= verdicts.RIGHT + 0.01 for at in interval.at.values())


def test_elsewhere_is_bounded_below_by_minus_its_margin() -> None:
    """Points of a rate; not shown to be no worse."""
    general = {
        "suite": "humaneval",
        "metric": "rate",
        "against": "base",
        "change": -0.01,
        "low": -0.05,
        "margin": 0.02,
    }
    checks = [{"name": "general", "passed": False, "words": "not shown"}]
    told = verdicts.verdict({**JUDGED, "general": general, "checks": checks}, {})
    assert told is not None
    interval = told.conditions[0].interval
    assert interval is not None
    assert (interval.high, interval.margin, interval.passed) == (None, -2.0, False)
    assert "−5.00 points" in interval.words


@pytest.mark.parametrize("told", [None, {}, {"promoted": False, "reason": "crashed 3 times"}])
def test_a_verdict_without_figures_has_no_interval(told: dict[str, Any] | None) -> None:
    found = verdicts.verdict(told, {})
    assert found is None if not told else found is not None and found.conditions == ()
