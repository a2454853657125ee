"""Figures for people."""

import math

import pytest

from services.metrics.page import duration, number, percent


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (75, "1 min 15 s"),
        (3600, "1 h"),
        (8000, "2 h 13 min"),
        (200_000, "2 d 7 h"),
        (-1, "0 s"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    """The two greatest units."""
    assert duration(seconds) == text


def test_an_improvement_is_shown_as_fewer_bits() -> None:
    """0.031 is 3.1 % fewer; a loss has a plus."""
    assert (percent(0.031), percent(-0.004), percent(None)) == ("−3.1 %", "+0.4 %", "–")


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "1"])
def test_what_is_no_number_is_a_dash(value: object) -> None:
    """Nothing that is not a finite number is printed as one."""
    assert number(value) == "–"
