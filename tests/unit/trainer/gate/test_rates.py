"""The gate's decision on pass rates of tasks: in points, and with nothing of what is proven for bits lost."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.trainer.gate import MIN_ITEMS, Evidence, History, Paired, Rule, Verdict, decide
from services.trainer.gate.simulation import simulate
from services.trainer.gate.worlds import Tasks, shift

SAMPLES = 4
rates = st.integers(0, SAMPLES).map(lambda passed: passed / SAMPLES)


def pairs(before: list[float], after: list[float]) -> list[Paired]:
    return [Paired(str(n), *pair) for n, pair in enumerate(zip(before, after, strict=True))]


def verdict(tasks: list[Paired], rule: Rule | None = None, **told: Any) -> Verdict:
    return decide(Evidence(tasks, "base", metric="rate", step=1 / SAMPLES, **told), rule or Rule())


def drawn(count: int, rise: float, seed: int = 5) -> list[Paired]:
    """Tasks that are solved in half of the tries, and then so much more often."""
    chance = random.Random(seed)

    def rate(solvable: float) -> float:
        return sum(chance.random() < solvable for _ in range(SAMPLES)) / SAMPLES

    return pairs([rate(0.4) for _ in range(count)], [rate(0.4 + rise) for _ in range(count)])


@settings(max_examples=100)
@given(st.lists(st.tuples(rates, rates).map(sorted), max_size=60), st.lists(st.booleans(), max_size=20))
def test_a_candidate_that_solves_no_task_more_often_is_never_promoted(
    found: list[list[float]], promoted: list[bool]
) -> None:
    tasks = pairs([high for _, high in found], [low for low, _ in found])
    assert not verdict(tasks, history=History(tuple(promoted))).promoted


@settings(max_examples=100)
@given(st.lists(st.tuples(rates, rates), min_size=MIN_ITEMS, max_size=60))
def test_the_improvement_is_the_difference_of_the_mean_rates(found: list[tuple[float, float]]) -> None:
    """In points, whatever the rates were before; and its bounds lie around it."""
    before, after = [pair[0] for pair in found], [pair[1] for pair in found]
    judged = verdict(pairs(before, after))
    assert judged.improvement == pytest.approx((sum(after) - sum(before)) / len(found))
    assert judged.low <= judged.improvement <= judged.high


@settings(max_examples=50)
@given(st.lists(st.tuples(rates, rates), max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_the_tasks_does_not_show(
    found: list[tuple[float, float]], chance: random.Random
) -> None:
    tasks = pairs([pair[0] for pair in found], [pair[1] for pair in found])
    assert str(verdict(tasks)) == str(verdict(chance.sample(tasks, len(tasks))))


@settings(max_examples=50)
@given(st.lists(st.tuples(rates, rates), max_size=40))
def test_a_verdict_on_tasks_is_json(found: list[tuple[float, float]]) -> None:
    told = json.loads(json.dumps(verdict(pairs([a for a, _ in found], [b for _, b in found])).as_json()))
    assert (told["metric"], told["held_out_tasks"], told["held_out_files"]) == ("rate", len(found), 0)


def test_one_task_more_is_not_beyond_noise() -> None:
    judged = verdict(pairs([0.5] * 48, [0.5] * 47 + [1.0]))
    assert not judged.promoted
    assert "not better than the base beyond noise: 1.04 points better" in judged.reason


def test_a_promotion_is_said_in_points_of_tasks() -> None:
    judged = verdict(pairs([0.25] * 48, [0.5] * 48))
    assert judged.promoted
    assert judged.reason.startswith(
        "25.00 points more of the held-out tasks solved than by the base (97.5% interval"
    )
    assert "48 held-out tasks)" in judged.reason


def test_a_margin_is_points() -> None:
    tasks = drawn(200, 0.1)
    assert verdict(tasks).promoted
    refused = verdict(tasks, Rule(min_improvement=0.1))
    assert not refused.promoted
    assert "not beyond noise by the 10.00 points that the recipe wants" in refused.reason


def test_more_tries_of_a_task_show_more() -> None:
    """The same rates from four tries each are surer than from one."""
    tasks = pairs([0.0] * 24 + [1.0] * 24, [0.0] * 20 + [1.0] * 28)
    one = decide(Evidence(tasks, "base", metric="rate"), Rule())
    assert verdict(tasks).low > one.low


def test_too_few_tasks_refuse() -> None:
    judged = verdict(pairs([0.0] * 4, [1.0] * 4))
    assert judged.reason.startswith(
        "4 held-out tasks are too few to decide by, 5 are needed: name a task set"
    )


@pytest.mark.parametrize("wrong", [1.25, -0.25, float("nan")])
def test_a_rate_that_is_none_refuses(wrong: float) -> None:
    judged = verdict(pairs([0.0] * 10, [*[1.0] * 9, wrong]))
    assert not judged.promoted
    assert "is not between 0 and 1" in judged.reason


def test_how_many_tasks_would_do_is_said() -> None:
    """And so many of the same kind do."""
    rule = Rule(expected_improvement=0.1)
    few = verdict(drawn(12, 0.0), rule)
    assert few.tasks_needed is not None
    assert few.tasks_needed > 12
    assert any(f"takes about {few.tasks_needed}" in note for note in few.notes)
    assert verdict(drawn(3 * few.tasks_needed, 0.0), rule).detectable < 0.1


def test_the_gate_is_seldom_wrong_about_tasks() -> None:
    """100 tracks of 5 rounds: false promotions within 5 %, and 15 points are seen more often than not."""
    found = simulate(Rule(expected_improvement=0.15, seed=42), Tasks(), tracks=100, rounds=5)
    assert found.false_promotion <= 0.05
    assert found.power >= 0.8


@pytest.mark.parametrize("effect", [-0.1, 0.0, 0.05, 0.2])
def test_a_worlds_effect_is_points_of_the_mean(effect: float) -> None:
    """Though tasks are moved by log-odds, and some cannot get better."""
    import numpy as np

    world = Tasks(items=20_000, samples=1, pass_rate=0.3)
    chance = np.random.default_rng(1)
    tasks = world.held_out(chance).paired(effect, chance)
    assert np.mean([task.after - task.before for task in tasks]) == pytest.approx(effect, abs=0.01)
    assert shift(world, effect) == shift(world, effect)
