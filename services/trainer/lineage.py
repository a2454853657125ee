"""What a round continues from: the champion's base model and revision must be its own."""

import logging
from collections.abc import Mapping
from typing import Any

from services.core.errors import ConfigurationError
from services.trainer.context import Context
from services.trainer.ledger import Adapter
from services.trainer.recipes.recipe import Recipe

log = logging.getLogger(__name__)


def check_champion(recipe: Recipe, manifest: Mapping[str, Any]) -> None:
    """Raises ConfigurationError when the champion belongs to another base model, or is a team where none is.

    Also where it is a team of other agents.
    """
    if manifest["base_model"] != recipe.base_model:
        raise ConfigurationError(
            f"the champion of {recipe.name} was trained on {manifest['base_model']}, the recipe now says"
            f" base_model {recipe.base_model}: give it a new name, which begins a track of its own"
        )
    ours, theirs = roles(recipe.model_dump(mode="json")), roles(manifest["recipe"])
    if ours != theirs:
        raise ConfigurationError(
            f"the champion of {recipe.name} is {_words(theirs)}, the recipe now trains {_words(ours)}:"
            " give it a new name, which begins a track of its own"
        )
    if recipe.method != "full" and manifest["recipe"]["lora_r"] != recipe.lora_r:
        log.warning(
            "going on from the champion's adapter of rank %d: lora_r %d applies to a new track only",
            manifest["recipe"]["lora_r"],
            recipe.lora_r,
        )


def revision(context: Context, parent: Adapter | None) -> str | None:
    """The hub commit: the recipe's, or the one the track began with."""
    return context.recipe.revision or (parent.manifest.get("base_revision") if parent else None)


def roles(recipe: Mapping[str, Any]) -> tuple[str, ...]:
    """The agents of a recipe as it is stored; none where one model is trained."""
    section = recipe.get("reinforcement") or {"profiles": ()}
    return tuple(profile["role"] for profile in section["profiles"])


def _words(agents: tuple[str, ...]) -> str:
    return f"a team of {' and '.join(agents)}" if agents else "one model"
