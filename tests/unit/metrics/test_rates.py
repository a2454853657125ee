"""How fast files are read, from quarters of an hour."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from services.metrics.pages.rates import HEIGHT, QUARTERS, Rates

NOW = datetime(2026, 11, 21, 21, 7, 30, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    quarter: datetime
    kept: int
    refused: int
    last_hour: int | None = None


def quarter(hours: int) -> datetime:
    """That began so many hours before the present one."""
    return datetime(2026, 11, 21, 21, 0, tzinfo=UTC) - timedelta(hours=hours)


def test_the_means_of_hour_and_day() -> None:
    """Files a minute: 120 in the last hour are 2, 1,440 in the last day are 1."""
    rates = Rates.of([Row(quarter(0), 90, 30, 120), Row(quarter(5), 1000, 320)], NOW)
    assert (rates.a_minute_in_hour, rates.a_minute_in_day) == (2.0, 1.0)


def test_a_day_of_bars_ends_with_the_present_quarter() -> None:
    rates = Rates.of([Row(quarter(0), 3, 1, 4)], NOW)
    assert len(rates.bars) == QUARTERS
    assert (rates.bars[-1].begins, rates.bars[-1].kept) == (quarter(0), 3)
    assert rates.bars[0].begins == quarter(24) + timedelta(minutes=15)


def test_the_tallest_bar_fills_the_height() -> None:
    """Kept above refused, in proportion."""
    rates = Rates.of([Row(quarter(0), 30, 10, 40), Row(quarter(1), 1, 0)], NOW)
    assert (rates.bars[-1].y, rates.bars[-1].height, rates.bars[-1].below) == (0.0, HEIGHT * 0.75, HEIGHT / 4)


def test_nothing_read_is_no_division_by_nought() -> None:
    rates = Rates.of([], NOW)
    assert (rates.read, rates.most, rates.a_minute_in_day) == (0, 0, 0.0)
