"""When to try again: the schedule that Standard Webhooks recommends, about three days, with jitter."""

from collections.abc import Callable
from random import uniform

from services.trainer.webhooks.transport import Answer

WAITS = (
    5.0,
    300.0,
    1800.0,
    7200.0,
    18_000.0,
    36_000.0,
    50_400.0,
    72_000.0,
    86_400.0,
)  # seconds, from the second try
JITTER = 0.2  # of a wait, either way
PAUSE, LONGEST_PAUSE = 5.0, 300.0  # seconds an endpoint gets nothing at all after it failed


def next_try(attempts: int, answer: Answer, draw: Callable[[float, float], float] = uniform) -> float | None:
    """Seconds until the next attempt after `attempts` that failed; None: that was the last.

    At least what the answer asks for, up to about a day.
    """
    if attempts > len(WAITS):
        return None
    wait = WAITS[attempts - 1] * draw(1 - JITTER, 1 + JITTER)
    return max(wait, min(answer.retry_after or 0.0, WAITS[-1]))


def pause(answer: Answer) -> float:
    """Seconds to spare a receiver that failed, whatever else waits for it."""
    return min(max(PAUSE, answer.retry_after or 0.0), LONGEST_PAUSE)
