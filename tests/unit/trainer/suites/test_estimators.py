"""pass@k against its definition."""

from fractions import Fraction
from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.suites.estimators import mean_pass_at_k, pass_at_k

counts = st.integers(1, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@pytest.mark.parametrize("n", range(1, 8))
def test_it_is_the_share_of_draws_of_k_programs_that_hold_one_that_passes(n):
    for c in range(n + 1):
        for k in range(1, n + 1):
            draws = list(combinations([True] * c + [False] * (n - c), k))
            share = Fraction(sum(map(any, draws)), len(draws))
            assert pass_at_k(n, c, k) == pytest.approx(float(share), abs=1e-12)


@given(counts)
def test_it_is_exact_for_many_programs(case):
    n, c, k = case
    assert pass_at_k(n, c, k) == pytest.approx(float(1 - Fraction(comb(n - c, k), comb(n, k))), abs=1e-12)


@given(counts)
def test_pass_at_1_is_the_share_that_passes(case):
    n, c, _ = case
    assert pass_at_k(n, c, 1) == pytest.approx(c / n)


@pytest.mark.parametrize(("n", "c", "k"), [(5, 6, 1), (5, -1, 1), (5, 2, 6), (5, 2, 0)])
def test_what_cannot_be_estimated_is_refused(n, c, k):
    with pytest.raises(ValueError, match="expected"):
        pass_at_k(n, c, k)


def test_the_mean_is_over_problems_whatever_their_programs():
    assert mean_pass_at_k([(10, 10), (2, 0), (4, 2)], 1) == pytest.approx(0.5)


def test_there_is_no_mean_where_a_problem_has_too_few_programs():
    assert mean_pass_at_k([(10, 3), (9, 3)], 10) is None
