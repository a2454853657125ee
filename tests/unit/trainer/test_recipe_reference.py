"""docs/reference/recipes.md says what the fields say."""

import pytest

from services.core.settings import PROJECT, RECIPE_OVERRIDES
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reference import PAGE, SECTIONS, page


def test_the_page_is_what_the_fields_say() -> None:
    """`python -m services.trainer.recipes.reference` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("name", Recipe.model_fields)
def test_every_field_is_described(name: str) -> None:
    """A sentence, in a row of its own."""
    description = Recipe.model_fields[name].description
    assert description
    assert description.endswith(".")
    assert page().count(f"\n| `{name}` |") == 1


def test_every_section_begins_with_a_field_there_is() -> None:
    assert set(SECTIONS) <= set(Recipe.model_fields)
    assert next(iter(Recipe.model_fields)) in SECTIONS


@pytest.mark.parametrize("name", RECIPE_OVERRIDES)
def test_an_override_is_in_the_page_and_in_the_example_environment(name: str) -> None:
    assert f"From the environment: `{name.upper()}`" in page()
    assert f"#{name.upper()}=" in (PROJECT / ".env.example").read_text(encoding="utf-8")
