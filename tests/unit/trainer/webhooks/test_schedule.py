"""When a failed delivery is tried again."""

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from services.trainer.webhooks import schedule
from services.trainer.webhooks.transport import Answer

FAILED = Answer(500, "HTTP 500", 0.1)
attempts = st.integers(1, 9)


def middle(low: float, high: float) -> float:
    return (low + high) / 2


def test_ten_attempts_over_three_days() -> None:
    """As Standard Webhooks recommends: at once, then after 5 s, 5 min, … 24 h; the tenth is the last."""
    waits = list(takewhile(bool, (schedule.next_try(number, FAILED, middle) for number in range(1, 20))))
    assert len(waits) == 9
    assert waits[:2] == [5, 300]
    assert sum(waits) == 75 * 3600 + 35 * 60 + 5


@given(attempts)
def test_waits_are_spread_by_a_fifth_either_way(number: int) -> None:
    """So that what failed together is not tried together."""
    wait = schedule.next_try(number, FAILED)
    assert wait is not None
    assert 0.8 <= wait / schedule.WAITS[number - 1] <= 1.2


@given(attempts, st.floats(0, 10**9))
def test_a_receiver_may_ask_for_more_time_up_to_a_day(number: int, asked: float) -> None:
    wait = schedule.next_try(number, Answer(429, "HTTP 429", 0.1, retry_after=asked), middle)
    assert wait == max(schedule.WAITS[number - 1], min(asked, 86_400))


def test_a_receiver_that_failed_is_spared_for_seconds_to_minutes() -> None:
    assert schedule.pause(FAILED) == 5
    assert schedule.pause(Answer(429, "HTTP 429", 0.1, retry_after=60)) == 60
    assert schedule.pause(Answer(429, "HTTP 429", 0.1, retry_after=10**6)) == 300
