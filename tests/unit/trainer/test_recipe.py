"""Recipes: read, overridden, refused with a reason."""

from pathlib import Path

import pytest

from services.core.errors import ConfigurationError
from services.trainer.recipe import available, load


@pytest.mark.parametrize("name", available())
def test_every_recipe_that_ships_is_valid(name: str) -> None:
    """A recipe in the tree loads, and its track carries its file's name."""
    assert load(name).name == name


def test_the_first_seeds_parameters_are_kept() -> None:
    """`qwen14b-qlora` is the system it came from."""
    recipe = load("qwen14b-qlora")
    assert (recipe.lora_r, recipe.lora_alpha, recipe.batch_size, recipe.gradient_accumulation_steps) == (
        256,
        512,
        4,
        4,
    )
    assert (recipe.learning_rate, recipe.max_length, recipe.held_out_share) == (2e-5, 4096, 0.05)
    assert (recipe.early_stopping_patience, recipe.early_stopping_threshold) == (3, 0.01)


def test_the_environment_overrides_by_name() -> None:
    """Only what is given changes."""
    recipe = load("demo", {"batch_size": 7})
    assert (recipe.batch_size, recipe.lora_r) == (7, 16)


def test_an_unknown_recipe_names_the_nearest() -> None:
    """A slip of the pen costs no search."""
    with pytest.raises(ConfigurationError, match=r"RECIPE=qwen14b.*did you mean qwen14b-qlora"):
        load("qwen14b")


def test_an_unknown_field_names_the_nearest(tmp_path: Path) -> None:
    """So does one inside the file."""
    path = tmp_path / "mine.yaml"
    path.write_text("base_model: ./m\nlearning_rat: 1e-4\n")
    with pytest.raises(ConfigurationError, match="learning_rat is not a field: did you mean learning_rate"):
        load(str(path))


def test_an_impossible_value_says_where_it_comes_from() -> None:
    """Field, value, limit, and the environment if it was that."""
    with pytest.raises(
        ConfigurationError, match=r"batch_size=0 \(from BATCH_SIZE in the environment\).*greater than"
    ):
        load("demo", {"batch_size": 0})


def test_a_file_that_is_not_yaml_is_refused(tmp_path: Path) -> None:
    """Not with a traceback."""
    path = tmp_path / "mine.yaml"
    path.write_text("a: [")
    with pytest.raises(ConfigurationError, match="not YAML"):
        load(str(path))
