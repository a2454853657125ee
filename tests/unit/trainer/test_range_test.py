"""What a learning-rate range test says."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.range_test import curve, find, has_diverged, rates


@given(st.floats(1e-8, 1e-3), st.floats(2, 1e5), st.integers(2, 200))
def test_rates_rise_by_equal_factors_from_the_lowest_to_the_highest(
    lowest: float, span: float, steps: int
) -> None:
    """Every decade gets as many steps."""
    tried = rates(lowest, lowest * span, steps)
    assert len(tried) == steps
    assert tried[0] == lowest
    assert tried[-1] == pytest.approx(lowest * span)
    factors = [later / earlier for earlier, later in itertools.pairwise(tried)]
    assert factors == pytest.approx([factors[0]] * (steps - 1))


@given(st.floats(0.1, 20), st.integers(1, 50))
def test_the_smoothing_is_unbiased(loss: float, steps: int) -> None:
    """A constant loss stays what it is from the first step on."""
    points = curve(rates(1e-6, 1e-1, steps + 1), [loss] * steps)
    assert [point.smoothed for point in points] == pytest.approx([loss] * steps)


def valley(rate: float) -> float:
    """Falls fastest at 1e-3, is lowest near 1e-2, shoots up beyond."""
    at = math.log10(rate)
    return 3 - 1 / (1 + math.exp(-4 * (at + 3))) + math.exp(6 * (at + 1.4))


def test_the_suggestion_is_where_the_loss_falls_fastest() -> None:
    """A third of a decade from the true place at most; below the lowest point, which the rise follows."""
    tried = rates(1e-6, 1.0, 120)
    losses = [valley(rate) for rate in tried]
    stop = next(n for n in range(6, 120) if has_diverged(curve(tried, losses[:n])))
    found = find(curve(tried, losses[:stop]))
    assert abs(math.log10(found.suggestion) + 3) < 0.35
    assert found.suggestion < found.lowest < found.diverges


def test_a_loss_that_never_falls_has_no_suggestion() -> None:
    """Said so, and not made up."""
    tried = rates(1e-6, 1e-1, 30)
    assert find(curve(tried, [2.0 + step / 100 for step in range(30)])).suggestion is None


def test_a_loss_that_is_not_finite_is_the_end() -> None:
    """It diverged at that rate."""
    tried = rates(1e-6, 1e-1, 30)
    points = curve(tried, [3.0 - step / 10 for step in range(20)] + [math.nan])
    assert has_diverged(points)
    assert find(points).diverges == tried[20]
    assert find(points).suggestion is not None
