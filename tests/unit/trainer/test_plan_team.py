"""What a round of reinforcement takes of a device."""

import pytest

from services.core.errors import ConfigurationError
from services.trainer.plan import Hardware, Shape
from services.trainer.plan.team import TeamPlan, plan_team
from services.trainer.recipes.files import load
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import section
from services.trainer.recipes.shapes import KNOWN

GB = 10**9


def recipe(**changed: object) -> Recipe:
    found = load("qwen1.5b-marl")
    return found.model_copy(update={"reinforcement": section(found).model_copy(update=changed)})


def plan(memory: float, **changed: object) -> TeamPlan:
    asked = recipe(**changed)
    return plan_team(
        Shape.from_config(KNOWN[asked.base_model]), asked, Hardware.gpu("a GPU", int(memory * GB), 1)
    )


def test_the_recipe_that_ships_fits_the_card_that_the_guide_names() -> None:
    """12 GB, with everything recomputed if it must be."""
    assert plan(12).fits


def test_a_smaller_card_takes_fewer_rows_at_once_then_recomputes() -> None:
    """As an update finds it out."""
    plans = [plan(memory) for memory in (141, 24, 16, 8)]
    rows = [each.rows for each in plans]
    assert rows == sorted(rows, reverse=True)
    assert (rows[0], rows[-1]) == (4, 1)
    assert [each.recomputes for each in plans] == [False, False, False, True]
    assert all(each.fits for each in plans)


def test_what_never_fits_is_refused_with_what_would() -> None:
    with pytest.raises(ConfigurationError, match="Lower context_window"):
        plan(2)


def test_every_role_has_an_adapter_and_a_frozen_one_no_moments() -> None:
    both, one = plan(80), plan(80, frozen_roles=("analyzer",))
    assert one.memory.adapters == both.memory.adapters
    assert one.memory.optimizer < both.memory.optimizer


def test_longer_answers_leave_room_for_fewer_episodes() -> None:
    assert plan(24, max_new_tokens=2048).rollout_rows < plan(24).rollout_rows


def test_its_speed_is_not_made_up() -> None:
    assert plan(80).as_json()["tokens_per_s"] is None


def test_a_base_in_nf4_is_decoded_where_that_takes_an_eighth_of_the_memory_at_most() -> None:
    """As `reinforcement.decoded` does it: two bytes a weight instead of half a one."""
    large, small = plan(141).memory.weights, plan(12).memory.weights
    shape = Shape.from_config(KNOWN[recipe().base_model])
    linear = shape.layers * shape.layer_linear
    assert 1.4 * linear < large - small < 1.5 * linear
    assert plan(24).memory.weights == large
