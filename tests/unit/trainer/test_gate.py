"""The gate's decision."""

import math
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from services.trainer.gate import MIN_ITEMS, Item, Verdict, decide


def verdict(items: list[Item], min_improvement: float = 0.0) -> Verdict:
    return decide(items, against="base", min_improvement=min_improvement, confidence=0.95, seed=1)


items = st.lists(
    st.builds(Item, st.floats(1, 1e4), st.floats(1, 1e4), st.integers(100, 10_000)), min_size=0, max_size=40
)


@settings(max_examples=50, deadline=None)
@given(items)
def test_nothing_worse_is_promoted(given_items: list[Item]) -> None:
    """A candidate with a higher total loss never passes."""
    if sum(item.after for item in given_items) >= sum(item.before for item in given_items):
        assert not verdict(given_items).promoted


def test_a_clear_improvement_is_promoted_and_said_so() -> None:
    """5 % on every file is beyond noise."""
    better = verdict([Item(1000.0 + n, 0.95 * (1000.0 + n), 500) for n in range(20)])
    assert better.promoted
    assert "5.00% fewer bits per byte than the base" in better.reason


def test_noise_is_not_promoted() -> None:
    """Files that go up and down by a tenth, with no effect, stay below the bar."""
    draw = random.Random(3)
    noise = [Item(1000.0, 1000.0 * (1 + draw.uniform(-0.1, 0.1)), 500) for _ in range(30)]
    assert not verdict(noise).promoted


def test_the_recipes_margin_holds() -> None:
    """A true gain below the margin is refused with the margin in the reason."""
    small = verdict([Item(1000.0 + n, 0.99 * (1000.0 + n), 500) for n in range(20)], min_improvement=0.02)
    assert not small.promoted
    assert "the recipe wants 2.00%" in small.reason


def test_a_loss_that_is_not_finite_refuses() -> None:
    """Divergence is a reason, not a crash."""
    diverged = verdict([Item(10.0, math.nan, 5)] * 20)
    assert not diverged.promoted
    assert "not finite" in diverged.reason


def test_too_few_files_refuse() -> None:
    """Four files decide nothing."""
    assert "too few" in verdict([Item(10.0, 1.0, 5)] * (MIN_ITEMS - 1)).reason


@settings(max_examples=20, deadline=None)
@given(items)
def test_the_same_figures_give_the_same_verdict(given_items: list[Item]) -> None:
    """The bootstrap is seeded."""
    assert str(verdict(given_items)) == str(verdict(given_items))
