"""Early stopping."""

import math

from hypothesis import given
from hypothesis import strategies as st

from services.trainer.engine.stopping import Stopper

losses = st.lists(st.floats(0, 20) | st.just(math.nan) | st.just(math.inf), max_size=40)


def after(values: list[float], threshold: float) -> Stopper:
    stopper = Stopper()
    for step, value in enumerate(values, 1):
        stopper = stopper.seen(value, step, threshold)
    return stopper


@given(losses, st.floats(0, 2))
def test_the_best_is_the_lowest_finite_loss_and_the_first_of_equals(
    values: list[float], threshold: float
) -> None:
    """Whatever counts as improvement, the best state is kept."""
    finite = [value for value in values if math.isfinite(value)]
    stopper = after(values, threshold)
    assert stopper.best == min(finite, default=math.inf)
    assert stopper.best_step == (values.index(min(finite)) + 1 if finite else 0)


@given(losses, st.floats(0, 2), st.integers(1, 5))
def test_patience_counts_evaluations_since_the_last_improvement_that_counts(
    values: list[float], threshold: float, patience: int
) -> None:
    """It waits exactly so many evaluations."""
    mark, waited = math.inf, 0
    for value in values:
        improved = math.isfinite(value) and (math.isinf(mark) or value < mark - threshold)
        mark, waited = (value, 0) if improved else (mark, waited + 1)
    assert after(values, threshold).should_stop(patience) == (waited >= patience)


def test_small_improvements_add_up() -> None:
    """A hundredth at a time is an improvement of three hundredths at the third."""
    assert after([2.0, 1.99, 1.98, 1.97], 0.025).waited == 0
    assert after([2.0, 1.99, 1.98], 0.025).waited == 2
