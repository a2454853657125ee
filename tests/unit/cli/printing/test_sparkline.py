"""A curve, or a histogram, in one line."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli.printing.sparkline import BARS, GAP, histogram, sparkline

values = st.lists(st.none() | st.floats(-1e300, 1e300) | st.just(math.nan) | st.just(math.inf), max_size=200)


@given(values, st.integers(1, 80))
def test_it_is_as_wide_as_the_values_or_as_asked(curve, width) -> None:
    line = sparkline(curve, width)
    finite = any(value is not None and math.isfinite(value) for value in curve)
    assert len(line) == (min(len(curve), width) if finite else 0)
    assert set(line) <= {*BARS, GAP}


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60, unique=True))
def test_a_higher_value_never_has_a_lower_bar(curve) -> None:
    bars = [BARS.index(bar) for bar in sparkline(curve)]
    ordered = [bar for _, bar in sorted(zip(curve, bars, strict=True))]
    assert ordered == sorted(ordered)
    assert (ordered[0], ordered[-1]) == (0, len(BARS) - 1)


def test_a_value_that_is_not_finite_leaves_a_gap() -> None:
    assert sparkline([1.0, math.nan, 2.0, None]) == "▁ █ "


def test_neighbours_share_a_bar_where_there_are_too_many() -> None:
    assert sparkline([0.0, 0.0, 1.0, 1.0], 2) == "▁█"


def test_a_flat_curve_is_low() -> None:
    assert sparkline([3.0, 3.0]) == "▁▁"


@pytest.mark.parametrize(
    ("counts", "bars"),
    [([], ""), ([0, 0], ""), ([1, 0, 8], "▁ █"), ([1, 1_000_000], "▁█"), ([5], "█")],
)
def test_a_histogram_shows_every_count_above_nought(counts: list[int], bars: str) -> None:
    assert histogram(counts) == bars
