"""Which tasks an iteration works on."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.reinforcement.drawing import drawn


def several(items, count, steps, seed=1):
    return [drawn(range(items), count, step, seed=seed, round_number=1) for step in range(steps)]


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 10))
def test_every_task_comes_once_an_epoch(items, count, steps):
    every = [item for one in several(items, count, steps) for item in one]
    counts = Counter(every).values()
    assert len(every) == count * steps
    assert max(counts) - (min(counts) if len(counts) == items else 0) <= 1


def test_epochs_have_orders_of_their_own():
    first, second = several(20, 20, 2)
    assert first != second


def test_the_same_is_drawn_again():
    assert several(20, 7, 5) == several(20, 7, 5)


def test_another_seed_draws_others():
    assert several(20, 7, 5) != several(20, 7, 5, seed=2)


def test_nothing_can_be_drawn_from_no_task():
    with pytest.raises(ValueError, match="no task to draw from"):
        drawn([], 1, 0, seed=1, round_number=1)
