"""Losses that are not finite, spikes, and batches left out."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.engine.faults import ENOUGH, RECENT, Faults

FACTOR = 3.0


def seen(*values: float) -> Faults:
    faults = Faults()
    for value in values:
        faults = faults.after_good(value)
    return faults


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_a_fault_from_the_first_step(value: float) -> None:
    """The loss as well as the gradients' norm."""
    assert "loss" in str(Faults().of(value, 1.0, FACTOR))
    assert "gradients" in str(Faults().of(1.0, value, FACTOR))


def test_a_loss_above_the_factor_times_the_median_is_a_spike() -> None:
    """Said with both figures; one below is none."""
    faults = seen(*[2.0] * ENOUGH)
    assert faults.of(6.1, 1.0, FACTOR) == "the training loss shot up to 6.100 from a median of 2.000"
    assert faults.of(5.9, 1.0, FACTOR) is None


def test_the_first_steps_and_small_losses_are_no_spikes() -> None:
    """The loss falls fast at first; near 0 it varies by factors."""
    assert seen(*[2.0] * (ENOUGH - 1)).of(20.0, 1.0, FACTOR) is None
    assert seen(*[0.01] * ENOUGH).of(0.2, 1.0, FACTOR) is None


@given(st.lists(st.floats(0, 10), max_size=100))
def test_the_memory_is_bounded(values: list[float]) -> None:
    """The last steps' losses, however long the round."""
    assert seen(*values).recent == tuple(values[-RECENT:])


@given(st.sets(st.integers(0, 50), max_size=10))
def test_steps_take_the_batches_that_are_not_left_out_in_order(skipped: set[int]) -> None:
    """None twice, none of those left out, none forgotten."""
    faults = Faults(skipped=tuple(sorted(skipped)))
    batches = [faults.batch_of(step) for step in range(40)]
    assert batches == [number for number in range(100) if number not in skipped][:40]


def test_a_rollback_is_remembered_by_what_is_restored() -> None:
    """The restored state knows nothing of it: count and batch come from now, losses from then."""
    now, then = Faults((1.0, 9.0), 1, (7,)), Faults((2.0,))
    assert now.after_rollback(5, then) == Faults((2.0,), 2, (5, 7))
