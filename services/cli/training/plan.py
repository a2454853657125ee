"""`ratchet plan`: how a recipe would run on a device, what else could be done, and where the memory goes."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from services.cli.environment import Environment
from services.cli.training import plan_hardware, plan_lines
from services.cli.training import plan_team as team
from services.core.models import Json
from services.trainer.plan import Hardware, Plan, Shape, alternatives, plan
from services.trainer.plan.team import plan_team
from services.trainer.plan_config import read_config
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe

PAIR_TOKENS = 700  # mean of a completion pair: log-normal, median 500, as bench/train.py draws them


def run(
    environment: Environment,
    name: str | None,
    *,
    device: str | None,
    vram: str | None,
    gpus: int | None,
    sample_tokens: int | None,
    as_json: bool,
) -> None:
    """Print the plan of a recipe; without a name, of the one that RECIPE names.

    Raises ConfigurationError for a recipe, device or size that cannot be, and when nothing fits;
    ModelNotFoundError when the base model's config is nowhere.
    """
    settings = environment.settings
    recipe = recipe_files.load(name or settings.recipe, settings.recipe_overrides)
    shape = Shape.from_config(read_config(recipe, settings.cache_dir, settings.hub_token))
    hardware = plan_hardware.named(device, vram, gpus)
    if recipe.reinforcement is not None:
        told, lines = _team(shape, recipe, hardware)
    else:
        told, lines = _single(shape, recipe, hardware, sample_tokens)
    if as_json:
        print(json.dumps(told))
        return
    if hardware.is_cpu and device is None:
        print(
            "There is no GPU here: this is the plan for the CPU."
            " For another machine say --device or --vram.\n"
        )
    print("\n".join(lines))


def _team(shape: Shape, recipe: Recipe, hardware: Hardware) -> tuple[Json, Iterator[str]]:
    found = plan_team(shape, recipe, hardware)
    return team.document(found), team.lines(found, hardware.devices)


def _single(
    shape: Shape, recipe: Recipe, hardware: Hardware, sample_tokens: int | None
) -> tuple[Json, Iterator[str]]:
    sample = min(recipe.max_length, sample_tokens or _sample_tokens(recipe))
    chosen = plan(shape, recipe, hardware, mean_document_tokens=sample)
    others = [] if hardware.is_cpu else alternatives(chosen.job)
    return _document(chosen, others, sample), plan_lines.lines(chosen, others, sample)


def _sample_tokens(recipe: Recipe) -> int:
    return PAIR_TOKENS if recipe.objective == "completion_pairs" else recipe.max_length


def _document(chosen: Plan, others: list[Plan], sample: int) -> Json:
    return {
        "recipe": chosen.job.recipe.name,
        "base_model": chosen.job.recipe.base_model,
        "parameters": chosen.job.shape.parameters,
        "trainable": chosen.job.trainable,
        "device": asdict(chosen.job.hardware),
        "distributed": chosen.job.way,
        "sample_tokens": sample,
        "plan": chosen.as_json(),
        "alternatives": [other.as_json() for other in others],
    }
