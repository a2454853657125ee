"""The bounds of a ratio."""

import numpy as np
import pytest

from services.trainer.gate.bootstrap import bounds, student_quantile


@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    [
        (0.95, 1, 6.313752), (0.95, 2, 2.919986), (0.975, 3, 3.182446), (0.9875, 4, 3.495406),
        (0.995, 10, 3.169273), (0.9995, 30, 3.645959), (0.5, 7, 0.0),
    ],
)  # fmt: skip
def test_students_quantiles_are_those_of_the_tables(
    probability: float, freedom: int, expected: float
) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("groups", [8, 24, 64])
def test_a_bound_is_wrong_as_often_as_it_may_be(groups: int) -> None:
    """No effect, files of very different sizes, some that differ far more than others: nominal 2.5 %."""
    draw = np.random.default_rng(1)
    wrong = 0
    for _ in range(1500):
        size = np.exp(draw.normal(0, 0.8, groups))
        change = 0.02 * draw.standard_t(5, groups) * size
        wrong += bounds(list(zip(change, size, strict=True)), 0.025, seed=3).low > 0
    assert wrong / 1500 < 0.04


def test_groups_that_agree_leave_no_doubt() -> None:
    found = bounds([(0.1 * size, size) for size in (1.0, 2.0, 5.0, 9.0)], 0.01, seed=1)
    assert (found.low, found.high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_nothing_is_known_of_a_ratio_to_nothing() -> None:
    assert bounds([(0.0, 0.0)] * 6, 0.01, seed=1).low == -np.inf


def test_a_lower_level_makes_wider_bounds_beyond_what_resamples_can_tell() -> None:
    draw = np.random.default_rng(1)
    values = [(float(x), 1.0) for x in draw.normal(0.1, 1, 30)]
    found = [bounds(values, level, seed=1) for level in (0.05, 0.01, 0.001, 0.00001)]
    assert sorted((each.low for each in found), reverse=True) == [each.low for each in found]
    assert sorted(each.high for each in found) == [each.high for each in found]
