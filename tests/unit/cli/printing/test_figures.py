"""Figures in words: what every command writes alike."""

from datetime import datetime, timedelta

import pytest

from services.cli.printing import figures

MORNING = datetime(2026, 1, 31, 8)  # noqa: DTZ001  as it is printed


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (3725, "1:02:05")])
def test_times_read_as_clocks(seconds, text):
    assert figures.clock(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"), [(950, "950"), (12_345, "12.3k"), (1_200_000, "1.2M"), (3e9, "3G"), (None, "–")]
)
def test_counts_have_three_digits(number, text):
    assert figures.short(number) == text


@pytest.mark.parametrize(("metric", "text"), [(None, "+11.30 %"), ("rate", "+11.3 pts")])
def test_a_gain_is_fewer_bits_or_of_a_team_points_of_pass_rate(metric, text):
    assert figures.gain(0.113, metric) == text


def test_a_gain_that_was_not_measured_is_a_dash():
    assert figures.gain(None) == "–"


def test_a_round_under_way_runs_and_a_closed_one_took_its_time():
    assert figures.took(MORNING, None) == "runs"
    assert figures.took(MORNING, MORNING + timedelta(minutes=2, seconds=5)) == "2:05"


def test_a_moment_is_told_to_the_minute():
    assert figures.moment(MORNING) == "2026-01-31 08:00"
    assert figures.moment(None) == "–"
