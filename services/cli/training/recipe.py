"""`ratchet recipe`: which ways of training there are, what one resolves to, whether it can work."""

import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.cli.asking import modelprocess
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.errors import ConfigurationError, StackError
from services.core.models import Json
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes import seed_names
from services.trainer.recipes.combinations import OF_CONTENTS, RENAMED
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import SECTION, Reinforcement

CHILD = "services.trainer.architecture"


@dataclass(frozen=True)
class Field:
    """A field of a resolved recipe, and who says so: the default, the recipe's file or the environment."""

    name: str
    value: Any
    origin: str
    instead_of: Any = None  # what the file or the default says, where the environment overrides it


# list


def run_list(environment: Environment, *, as_json: bool) -> None:
    """Print every recipe that ships, and the one that RECIPE names where it is another."""
    told = listed(environment)
    print(json.dumps(told) if as_json else "\n".join(list_lines(told)))


def listed(environment: Environment, directory: Path = recipe_files.RECIPES) -> list[Json]:
    """As the files have them; a recipe that is wrong is listed with its problem."""
    chosen = environment.settings.recipe
    names = recipe_files.available(directory)
    told = [_summary(name, chosen, directory) for name in names]
    return told if chosen in names else [*told, _summary(chosen, chosen, directory)]


def _summary(name: str, chosen: str, directory: Path) -> Json:
    try:
        recipe = recipe_files.load(name, directory=directory)
    except ConfigurationError as exc:
        return {"name": name, "chosen": name == chosen, "problem": str(exc)}
    shown = ("base_model", "method", "objective", "description")
    return {
        "name": name,
        "chosen": name == chosen,
        "problem": None,
        **{field: getattr(recipe, field) for field in shown},
    }


def list_lines(told: Sequence[Json]) -> Iterator[str]:
    """A block a recipe; an arrow before the one that RECIPE names."""
    width = max(len(row["name"]) for row in told)
    for row in told:
        mark = "→" if row["chosen"] else " "
        if row["problem"] is not None:
            yield f"{mark} {inert(row['name']):{width}}  wrong: {inert(row['problem'])}"
            continue
        yield f"{mark} {inert(row['name']):{width}}  {inert(row['description'])}"
        yield f"  {'':{width}}  {inert(row['base_model'])}, {row['method']}, {row['objective']}"
    yield ""
    yield "→ is the one that RECIPE names; `ratchet recipe show NAME` has every field"


# show


def run_show(environment: Environment, name: str | None, *, as_json: bool) -> None:
    """Print what the recipe resolves to. Raises ConfigurationError when it is none."""
    path, recipe, fields = resolved(environment, name)
    if as_json:
        origins = {field.name: field.origin for field in fields}
        print(json.dumps({"path": str(path), "recipe": recipe.model_dump(mode="json"), "origins": origins}))
    else:
        print("\n".join(show_lines(path, recipe, fields)))


def resolved(environment: Environment, name: str | None) -> tuple[Path, Recipe, list[Field]]:
    """The recipe as a round would have it now; without a name the one that RECIPE names."""
    path = recipe_files.find(name or environment.settings.recipe)
    written = recipe_files.read(path)
    overrides = environment.settings.recipe_overrides
    recipe = recipe_files.resolve(path, written, overrides)
    return path, recipe, origins(recipe, written, overrides)


def origins(recipe: Recipe, written: Mapping[str, Any], overrides: Mapping[str, Any]) -> list[Field]:
    """Every field with who says so."""
    written = seed_names.moved(written)
    in_file = {RENAMED.get(name, name) for name in written}
    fields = []
    for name, field in Recipe.model_fields.items():
        value = getattr(recipe, name)
        if name in overrides:
            before = written.get(name, field.default)
            fields.append(Field(name, value, "environment", instead_of=before))
        else:
            fields.append(Field(name, value, "recipe" if name in in_file else "default"))
    return fields


def show_lines(path: Path, recipe: Recipe, fields: Sequence[Field]) -> Iterator[str]:
    """A line a field: `=` before what the recipe's file says, `!` before what the environment overrides."""
    width = max(len(field.name) for field in fields)
    yield f"{recipe.name} ({inert(str(path))})"
    for field in fields:
        if recipe.reinforcement is not None and field.name in OF_CONTENTS and field.origin == "default":
            continue
        mark = {"environment": "!", "recipe": "=", "default": " "}[field.origin]
        line = f"{mark} {field.name:{width}}  {_shown(field.value)}"
        if field.origin == "environment":
            line += f"  (from {field.name.upper()}; otherwise {_shown(field.instead_of)})"
        yield line
    if recipe.reinforcement is not None:
        yield from _section_lines(recipe.reinforcement)
    yield ""
    yield "= said by the recipe   ! overridden by the environment   else the default"


def _section_lines(section: Reinforcement) -> Iterator[str]:
    """The section's fields, marked as the recipe's; each agent with what it is told."""
    width = max(map(len, Reinforcement.model_fields))
    yield ""
    yield f"{SECTION}:"
    for name in Reinforcement.model_fields:
        mark = "=" if name in section.model_fields_set else " "
        value = section.roles if name == "profiles" else getattr(section, name)
        yield f"{mark} {name:{width}}  {_shown(value)}"
    for profile in section.profiles:
        yield f"  {profile.role}{' (answers)' if profile.with_answer else ''}: {inert(profile.prompt)}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Reinforcement):
        return f"{value.algorithm}, {' and '.join(value.roles)} on {value.tasks}, as below"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_shown, value))}]"
    return "–" if value is None else inert(str(value))


# check


def run_check(environment: Environment, name: str | None, *, as_json: bool) -> bool:
    """Print what there is to say about the recipe and its base model; whether nothing is wrong.

    Raises ConfigurationError for a recipe that is impossible whatever the model.
    """
    _, recipe, _ = resolved(environment, name)
    found = examined(environment, recipe)
    print(json.dumps(found) if as_json else "\n".join(check_lines(recipe, found)))
    return not found["problems"]


def examined(environment: Environment, recipe: Recipe) -> Json:
    """What a process with transformers finds. Raises StackError when it breaks."""
    if importlib.util.find_spec("transformers") is None:
        raise StackError("the trainer's packages are not installed here: `make setup` brings them")
    print(f"asking for the configuration of {inert(recipe.base_model)} …", file=sys.stderr, flush=True)
    return modelprocess.ask(environment, CHILD, recipe.model_dump(mode="json"))


def _work(recipe: Recipe) -> Iterator[str]:
    """What a step takes."""
    if (asked := recipe.reinforcement) is None:
        yield f"rows          {recipe.rows_per_step} of {recipe.max_length} tokens a step and device"
        return
    frozen = [f"{role} (not trained)" if role in asked.frozen_roles else role for role in asked.roles]
    yield f"team          {', '.join(frozen)}; {asked.algorithm}, {asked.reward_type} reward"
    yield f"tasks         {asked.tasks}, judged by the test split of {asked.eval_tasks or asked.tasks}"
    yield (
        f"rollout       {asked.rollout_turns} turns of the team an iteration, {asked.iterations} iterations;"
        f" prompts of {asked.context_window} tokens and answers of {asked.max_new_tokens} at most"
    )


def check_lines(recipe: Recipe, found: Json) -> Iterator[str]:
    """The architecture, what is trained of it, what was and was not looked at, and every problem."""
    yield f"recipe        {recipe.name}: {recipe.method}, {recipe.objective}"
    yield f"base model    {inert(recipe.base_model)}"
    if (shape := found["architecture"]) is not None:
        yield f"config        from {found['config_from']}"
        yield (
            f"architecture  {shape['model_type']}, {shape['layers']} layers of {shape['hidden']},"
            f" {shape['vocabulary']:,} tokens, {shape['positions'] or 'any number of'} positions"
        )
        share = found["trainable"] / shape["parameters"]
        yield f"parameters    {shape['parameters']:,}; trained {found['trainable']:,} ({share:.2%} of them)"
    for number, target in enumerate(found["targets"]):
        word = "adapters" if number == 0 else ""
        yield f"{word:12}  {target['count']} × {target['name']} {target['inputs']} → {target['outputs']}"
    yield from _work(recipe)
    yield f"checked       {', '.join(['fields', *found['checked']])}"
    for reason in found["not_checked"]:
        yield f"not checked   {inert(reason)}"
    for problem in found["problems"]:
        yield f"wrong         {inert(problem)}"
    if not found["problems"]:
        yield "nothing is wrong" + (" with what was checked" if found["not_checked"] else "")
