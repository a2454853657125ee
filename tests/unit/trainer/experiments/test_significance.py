"""Intervals and tests against values worked out by hand or published."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.experiments.significance import (
    bootstrap_interval,
    holm,
    mcnemar_exact,
    sign_flip_p,
    standard_deviation,
)

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)
DIFFERENCES = st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=40)


# McNemar


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 2 / 2**5),
        (6, 1, 2 * (1 + 7) / 2**7),  # 0.125
        (10, 2, 2 * (1 + 12 + 66) / 2**12),  # 0.03857, as scipy.stats.binomtest(2, 12).pvalue
        (4, 4, 1.0),
        (59, 6, 5.705e-12),  # scipy.stats.binomtest(6, 65).pvalue
    ],
)
def test_mcnemar_is_the_exact_binomial_test(only_first: int, only_second: int, p: float) -> None:
    assert mcnemar_exact(only_first, only_second) == pytest.approx(p, rel=1e-3)
    assert mcnemar_exact(only_second, only_first) == mcnemar_exact(only_first, only_second)


def test_mcnemar_keeps_its_level() -> None:
    """Where both are equally good, an exact test is below 5 % in at most 5 % of all cases."""
    for discordant in range(1, 60):
        below = sum(
            math.comb(discordant, passed)
            for passed in range(discordant + 1)
            if mcnemar_exact(passed, discordant - passed) <= 0.05
        )
        assert below / 2**discordant <= 0.05


# Holm


def test_holm_by_hand() -> None:
    """0.01 × 4, 0.02 × 3, 0.03 × 2, and 0.04, which may not be below the one before."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_holm_as_r_has_it() -> None:
    """p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")"""
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])


def test_one_test_needs_no_correction() -> None:
    assert holm([0.03]) == [0.03]
    assert holm([]) == []


@given(P_VALUES)
def test_holm_lies_between_the_p_value_and_bonferronis(p_values: list[float]) -> None:
    for p, adjusted in zip(p_values, holm(p_values), strict=True):
        assert p <= adjusted <= min(1.0, len(p_values) * p) + 1e-12


@given(P_VALUES)
def test_holm_keeps_the_order(p_values: list[float]) -> None:
    pairs = sorted(zip(p_values, holm(p_values), strict=True))
    assert [adjusted for _, adjusted in pairs] == sorted(adjusted for _, adjusted in pairs)


# sign flips


def test_few_differences_are_flipped_in_every_way() -> None:
    """Five differences of one sign: two of the 32 patterns are as extreme."""
    assert sign_flip_p([0.1, 0.2, 0.3, 0.4, 0.5], resamples=100) == 2 / 32
    assert sign_flip_p([3, 2, -1], resamples=100) == 4 / 8  # ±(3+2−1) and ±(3+2+1)


def test_no_difference_is_no_difference() -> None:
    assert sign_flip_p([0.0] * 20, resamples=100) == 1.0


@given(DIFFERENCES)
def test_flipping_all_signs_changes_nothing(differences: list[float]) -> None:
    flipped = [-value for value in differences]
    assert sign_flip_p(differences, resamples=200) == sign_flip_p(flipped, resamples=200)


def test_random_flips_come_near_the_exact_test() -> None:
    """Of ±1 it is a sign test: 14 of 20 is 0.1153 (scipy.stats.binomtest(6, 20).pvalue)."""
    assert sign_flip_p([1] * 14 + [-1] * 6, resamples=100_000) == pytest.approx(0.1153, abs=0.004)


def test_a_p_value_is_never_zero() -> None:
    assert sign_flip_p([1.0] * 200, resamples=999) == 1 / 1000


def test_sign_flips_keep_their_level_with_few_problems() -> None:
    """Eight problems, no effect: at most 5 % of 400 tests below 5 %, where the bootstrap has about 10 %."""
    draw = random.Random(0)
    below = sum(sign_flip_p([draw.gauss(0, 1) for _ in range(8)], resamples=100) <= 0.05 for _ in range(400))
    assert below <= 400 * 0.07


# bootstrap


def test_the_interval_of_a_mean_is_near_the_normal_one() -> None:
    """±1 in equal shares, 400 of them: standard error 0.05."""
    low, high = bootstrap_interval([1.0, -1.0] * 200, confidence=0.95, resamples=20_000)
    assert low == pytest.approx(-1.96 * 0.05, abs=0.005)
    assert high == pytest.approx(1.96 * 0.05, abs=0.005)


def test_equal_differences_have_an_interval_without_width() -> None:
    assert bootstrap_interval([0.25] * 7, confidence=0.9, resamples=200) == (0.25, 0.25)


def test_the_same_differences_have_the_same_interval() -> None:
    first, second = (bootstrap_interval([0.1, 0.4, -0.2], confidence=0.95, resamples=500) for _ in "ab")
    assert first == second


@given(DIFFERENCES)
def test_an_interval_lies_within_the_differences(differences: list[float]) -> None:
    low, high = bootstrap_interval(differences, confidence=0.95, resamples=200)
    assert min(differences) - 1e-9 <= low <= high <= max(differences) + 1e-9


def test_no_difference_has_no_interval() -> None:
    with pytest.raises(ValueError, match="one at least"):
        bootstrap_interval([], confidence=0.95, resamples=100)


def test_a_standard_deviation_takes_two() -> None:
    assert standard_deviation([1.0]) is None
    assert standard_deviation([1.0, 3.0]) == pytest.approx(math.sqrt(2))
