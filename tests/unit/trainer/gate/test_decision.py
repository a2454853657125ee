"""The gate's decision."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.trainer.gate import (
    MIN_ITEMS,
    Evidence,
    GeneralEvidence,
    History,
    Paired,
    Rule,
    Verdict,
    decide,
)

SUITE = "humaneval-loss"
ELSEWHERE = Rule(general_suite=SUITE)


def files(factors: list[float], group: int = 1) -> list[Paired]:
    """Files of rising loss, each multiplied by its factor; `group` of them in a cluster."""
    return [
        Paired(str(n // group), 1000.0 + n, factor * (1000.0 + n), 500) for n, factor in enumerate(factors)
    ]


def noisy(count: int, factor: float, seed: int = 3) -> list[Paired]:
    draw = random.Random(seed)
    return files([factor + draw.uniform(-0.01, 0.01) for _ in range(count)])


def verdict(code: list[Paired], rule: Rule | None = None, **evidence: object) -> Verdict:
    return decide(Evidence(code, "base", **evidence), rule or Rule())  # type: ignore[arg-type]


def elsewhere(factor: float, count: int = 100) -> GeneralEvidence:
    return GeneralEvidence(SUITE, "nats", noisy(count, factor, seed=5))


def rates(before: list[float], after: list[float], suite: str = "humaneval") -> GeneralEvidence:
    items = [Paired(str(n), *pair) for n, pair in enumerate(zip(before, after, strict=True))]
    return GeneralEvidence(suite, "rate", items)


nats = st.floats(1, 1e4)
items = st.lists(
    st.builds(Paired, st.sampled_from("abcdefghij"), nats, nats, st.floats(100, 10_000)), max_size=40
)
worse = st.lists(
    st.builds(
        lambda group, before, rise: Paired(group, before, before * (1 + rise), 1.0),
        st.sampled_from("abcdefghij"), nats, st.floats(0, 5),
    ), max_size=60,
)  # fmt: skip


@settings(max_examples=100)
@given(worse, st.lists(st.booleans(), max_size=30))
def test_a_candidate_that_is_better_on_no_item_is_never_promoted(
    given_items: list[Paired], promoted: list[bool]
) -> None:
    """Whatever the track's history."""
    assert not verdict(given_items, history=History(tuple(promoted))).promoted


@settings(max_examples=50)
@given(items)
def test_a_candidate_with_a_higher_total_loss_is_never_promoted(given_items: list[Paired]) -> None:
    if sum(item.after for item in given_items) >= sum(item.before for item in given_items):
        assert not verdict(given_items).promoted


@settings(max_examples=50)
@given(st.floats(0.02, 3), st.integers(MIN_ITEMS, 200))
def test_a_collapse_elsewhere_is_never_promoted(rise: float, count: int) -> None:
    """However much better it is on this code."""
    judged = verdict(noisy(60, 0.7), ELSEWHERE, general=elsewhere(1.01 + rise, count))
    assert not judged.promoted
    assert [check.passed for check in judged.checks] == [True, False]


@settings(max_examples=30)
@given(items, st.randoms(use_true_random=False))
def test_the_order_of_the_items_does_not_show(given_items: list[Paired], draw: random.Random) -> None:
    shuffled = draw.sample(given_items, len(given_items))
    general, turned = elsewhere(1.0), elsewhere(1.0)
    turned = replace(turned, items=draw.sample(list(turned.items), len(turned.items)))
    assert str(verdict(given_items, ELSEWHERE, general=general)) == str(
        verdict(shuffled, ELSEWHERE, general=turned)
    )


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
def test_a_loss_that_is_no_loss_refuses(wrong: float) -> None:
    """Divergence is a reason, not a crash."""
    diverged = verdict([*noisy(20, 0.9), Paired("x", 10.0, wrong, 5)])
    assert not diverged.promoted
    assert "not finite" in diverged.reason
    assert (
        "not finite"
        in verdict(
            noisy(20, 0.9), ELSEWHERE, general=replace(elsewhere(1.0), items=[Paired("x", 1.0, wrong)] * 9)
        ).reason
    )


def test_a_clear_improvement_is_promoted_and_said_so() -> None:
    """5 % on every file is beyond noise."""
    better = verdict(files([0.95] * 20))
    assert better.promoted
    assert "5.00% fewer bits per byte than the base" in better.reason
    assert (better.held_out_files, better.held_out_bytes, better.look) == (20, 10_000, 1)


def test_noise_is_not_promoted() -> None:
    """Files that go up and down by a tenth, with no effect, stay below the bar."""
    draw = random.Random(3)
    noise = verdict(files([1 + draw.uniform(-0.1, 0.1) for _ in range(30)]))
    assert not noise.promoted
    assert "not better than the base beyond noise" in noise.reason


def test_the_margin_itself_must_be_shown() -> None:
    """The lower bound has to lie above it, not the estimate alone."""
    rule = Rule(min_improvement=0.02)
    assert not verdict(files([0.99] * 20), rule).promoted
    refused = verdict(noisy(20, 0.979), rule)
    assert refused.improvement > 0.02 > refused.low > 0
    assert "not beyond noise by the 2.00% that the recipe wants" in refused.reason
    assert verdict(noisy(20, 0.95), rule).promoted


def test_too_few_files_refuse() -> None:
    assert "too few" in verdict(files([0.1] * (MIN_ITEMS - 1))).reason


def test_files_of_few_clusters_are_few() -> None:
    """Near duplicates tell the same thing several times."""
    assert "only 3 independent groups" in verdict(files([0.5] * 30, group=10)).reason


def test_files_of_a_cluster_count_as_one() -> None:
    """Copied tenfold within their clusters, the same files show no more."""
    few = noisy(12, 0.98)
    copies = [item for item in few for _ in range(10)]
    assert verdict(copies).low == pytest.approx(verdict(few).low)
    assert verdict(copies).held_out_files == 120


def test_a_suite_that_was_not_measured_refuses() -> None:
    for general in (None, replace(elsewhere(1.0), suite="another")):
        refused = verdict(noisy(30, 0.9), ELSEWHERE, general=general)
        assert not refused.promoted
        assert "humaneval-loss, was not measured" in refused.reason


def test_no_worse_elsewhere_is_said_with_its_bound() -> None:
    good = verdict(noisy(30, 0.9), ELSEWHERE, general=elsewhere(1.0))
    assert good.promoted
    assert "no worse elsewhere: humaneval-loss" in good.reason
    assert good.general is not None
    assert good.general["low"] > -0.02


def test_a_small_fall_of_a_rate_is_not_shown_by_few_problems() -> None:
    """3 of 164 problems lost: less than 2 points, but not beyond doubt; and how many would do is said."""
    rule = Rule(general_suite="humaneval")
    before = [1.0] * 100 + [0.0] * 64
    general = rates(before, [0.0] * 3 + before[3:])
    refused = verdict(noisy(30, 0.9), rule, general=general)
    assert not refused.promoted
    assert "not shown to be no worse elsewhere" in refused.reason
    assert "would show so little" in refused.reason
    assert verdict(noisy(30, 0.9), rule, general=rates(before, before)).promoted
    assert not verdict(noisy(30, 0.9), rule, general=rates(before[90:110], before[90:110])).promoted


def test_too_few_files_for_the_expected_improvement_are_said() -> None:
    """And how many would do: that many of the same kind do."""
    few = noisy(8, 0.998)
    refused = verdict(few, Rule(expected_improvement=0.005))
    assert refused.files_needed is not None
    assert refused.files_needed > 8
    assert f"takes about {refused.files_needed}" in refused.reason
    many = verdict(noisy(2 * refused.files_needed, 0.995), Rule(expected_improvement=0.005))
    assert many.detectable < 0.005


def test_later_looks_have_to_show_more() -> None:
    """The same figures pass at the first look of a track and not after a hundred in vain."""
    code = noisy(12, 0.9955, seed=4)
    first = verdict(code)
    last = verdict(code, history=History((False,) * 100))
    assert (first.promoted, last.promoted) == (True, False)
    assert last.level < first.level / 1000


@settings(max_examples=20)
@given(items)
def test_a_verdict_is_json(given_items: list[Paired]) -> None:
    """Plain dicts, lists and numbers, whatever was judged."""
    import json

    assert json.loads(json.dumps(verdict(given_items).as_json()))["against"] == "base"
