"""What the pages of rounds make of rows: bars, curves, shares, differences, intervals."""

import math
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.models import ContentRole, RoundState
from services.metrics.pages import composition, curves, practice, timeline, verdicts
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


def test_two_rounds_share_a_chart_of_each_figure_that_both_have() -> None:
    """However far each came; a team's reward stands beside no single model's loss."""
    one = [logged(1, loss=2.0), logged(2, loss=1.5), logged(2, "eval", bits_per_byte=0.7)]
    (shared,) = curves.compared(one, [logged(1, loss=1.8)])
    assert [(line.name, line.data) for line in shared.lines] == [
        ("A", ((1, 2.0), (2, 1.5))), ("B", ((1, 1.8),)),
    ]  # fmt: skip
    assert curves.compared(one, [logged(1, loss=0.1, reward=0.5)]) == []


@pytest.mark.parametrize(
    ("first", "last", "named"),
    [(1, 6, [1, 2, 3, 4, 5, 6]), (97, 102, [100]), (1, 40, [1, 10, 20, 30, 40])],
)
def test_rounds_are_numbered_where_there_is_room(first: int, last: int, named: list[int]) -> None:
    """All of a few; with three digits every fifth; of many every tenth."""
    line = timeline.timeline("demo", [round_row(at, 60) for at in range(first, last + 1)], NOW)
    assert [bar.number for bar in line.bars if bar.named] == named


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


def of_roles(step: int, **roles: float) -> SimpleNamespace:
    return logged(
        step, kl_reference=max(roles.values()), roles={r: {"kl_reference": v} for r, v in roles.items()}
    )


def test_each_agent_has_a_line_in_the_order_of_the_team() -> None:
    """However the database orders them; one that says nothing at a step leaves a gap."""
    rows = [of_roles(1, coder=0.2, analyzer=0.1), of_roles(2, coder=0.3)]
    told = curves.as_json(rows, curves.BY_NAME["kl"], ["analyzer", "coder"])
    assert [(line["name"], line["points"]) for line in told["series"]] == [
        ("analyzer", [0.1, None]), ("coder", [0.2, 0.3])
    ]  # fmt: skip


def test_without_figures_of_roles_the_teams_own_is_drawn() -> None:
    rows = [logged(1, kl_reference=0.1), logged(2, kl_reference=0.2)]
    told = curves.as_json(rows, curves.BY_NAME["kl"], ["analyzer", "coder"])
    assert [line["points"] for line in told["series"]] == [[0.1, 0.2]]


def test_the_loss_of_a_policy_is_not_called_nats_a_token() -> None:
    practising = [logged(1, reward=0.2, loss=0.01), logged(2, reward=0.3, loss=-0.01)]
    assert [figure.name for figure, _ in curves.charts(practising)] == ["reward", "policy"]


@given(
    st.lists(st.tuples(st.sampled_from(["train", "validation", "held_out"]), st.integers(1, 500)), min_size=1)
)
def test_task_sets_add_up_to_what_a_team_practises(drawn: list[tuple[str, int]]) -> None:
    rows = [
        SimpleNamespace(role=role, task_set=f"s{at % 3}", tasks=tasks)
        for at, (role, tasks) in enumerate(drawn)
    ]
    made = composition.practice(rows)
    assert made is not None
    assert made.roles.total == sum(tasks for _, tasks in drawn) == sum(line.total for line in made.sets)
    assert composition.practice([]) is None


def test_a_verdict_on_tasks_is_drawn_in_points() -> None:
    checks = [{"name": "tasks", "passed": True, "words": "better"}]
    rates = {"base": 0.25, "candidate": 0.5}
    found = verdicts.verdict({**JUDGED, "metric": "rate", "pass_rates": rates, "checks": checks}, {})
    assert found is not None
    assert found.rates == (("base", 0.25), ("candidate", 0.5))
    assert found.bits == ()
    interval = found.conditions[0].interval
    assert interval is not None
    assert (interval.unit, interval.estimate) == (" points", pytest.approx(2.1))


@pytest.mark.parametrize(
    "recipe", [{}, {"objective": "cpt"}, {"objective": "reinforcement"},
               {"objective": "reinforcement", "reinforcement": {"profiles": ["x", None]}}],
)  # fmt: skip
def test_a_recipe_without_agents_has_no_team(recipe: dict[str, Any]) -> None:
    assert practice.team(recipe) == ()


def test_what_a_team_logged_last_is_told_past_what_is_missing() -> None:
    rows = [
        logged(0, "eval", solved=0.25), logged(1, reward=0.2, kl_reference=0.01), logged(2, reward=math.nan),
    ]  # fmt: skip
    assert practice.latest(rows) == {"passed": 0.25, "reward": 0.2, "kl": 0.01}


def test_a_running_round_of_a_team_stands_at_what_it_logged_last() -> None:
    """Another round's figures are not its own."""
    rows = [{"track": "marl", "round": 3, "metrics": {"reward": 0.41}, "evaluated": None}]
    value = {"operations": {"practice": rows}}
    assert practice.standing(value, "marl", 3) == {"reward": 0.41, "solved": None}
    assert practice.standing(value, "marl", 4) == {"reward": None, "solved": None}
    assert practice.standing({}, "marl", 3) == {"reward": None, "solved": None}
