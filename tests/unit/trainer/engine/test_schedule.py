"""Learning rates of a round's steps."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.engine.schedule import learning_rate, warm_up_steps
from services.trainer.recipes.recipe import Recipe


def recipe(**fields: object) -> Recipe:
    return Recipe.model_validate({"name": "r", "base_model": "./m", "learning_rate": 1e-3, **fields})


warm_ups = st.floats(0, 0.99)
recipes = st.builds(
    recipe, lr_schedule=st.sampled_from(["cosine", "linear", "constant"]), warmup_share=warm_ups
) | st.builds(
    recipe,
    lr_schedule=st.just("cosine_with_restarts"),
    warmup_share=warm_ups,
    lr_restarts=st.integers(1, 7),
)


@given(recipes, st.integers(1, 3000), st.data())
def test_every_step_learns_and_none_beyond_the_recipe(
    chosen: Recipe, steps: int, data: st.DataObject
) -> None:
    """No step is wasted on a rate of 0, none goes above the top."""
    step = data.draw(st.integers(0, steps - 1))
    assert 0 < learning_rate(step, steps, chosen) <= chosen.learning_rate


@given(recipes, st.integers(1, 1000))
def test_the_warm_up_rises_to_the_top(chosen: Recipe, steps: int) -> None:
    """Equal parts, the last of which is the recipe's learning rate."""
    rates = [learning_rate(step, steps, chosen) for step in range(warm_up_steps(steps, chosen))]
    assert rates == sorted(rates)
    if rates:
        assert rates[-1] == chosen.learning_rate


@given(st.sampled_from(["cosine", "linear"]), st.integers(2, 1000))
def test_cosine_and_linear_never_rise_again(schedule: str, steps: int) -> None:
    """After the warm-up it only goes down."""
    chosen = recipe(lr_schedule=schedule, warmup_share=0.1)
    rates = [learning_rate(step, steps, chosen) for step in range(warm_up_steps(steps, chosen), steps)]
    assert rates == sorted(rates, reverse=True)


def test_restarts_are_as_many_as_the_recipe_says() -> None:
    """Three cosines: two returns to the top."""
    chosen = recipe(lr_schedule="cosine_with_restarts", lr_restarts=3, warmup_share=0)
    rates = [learning_rate(step, 300, chosen) for step in range(300)]
    assert sum(later > earlier for earlier, later in itertools.pairwise(rates)) == 2
    assert rates[0] == rates[100] == rates[200] == 1e-3


def test_the_cosine_is_the_one_of_the_paper() -> None:
    """Half of the top halfway down (Loshchilov & Hutter 2017, equation 5)."""
    chosen = recipe(lr_schedule="cosine", warmup_share=0.1)
    assert learning_rate(55, 100, chosen) == pytest.approx(0.5e-3)
    assert learning_rate(99, 100, chosen) == pytest.approx(0.5e-3 * (1 + math.cos(math.pi * 89 / 90)))
