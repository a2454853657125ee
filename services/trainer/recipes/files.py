"""Recipes on disk: found, read from YAML, overridden from the environment, explained when they are wrong."""

import difflib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from services.core.errors import ConfigurationError
from services.core.settings import PROJECT
from services.trainer.recipes import seed_names
from services.trainer.recipes.combinations import RENAMED, CombinationError, nearest
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import SECTION, Reinforcement

log = logging.getLogger(__name__)

RECIPES = PROJECT / "recipes"
SUFFIXES = (".yaml", ".yml")
PROFILE_KEYS = ("role", "prompt", "with_answer")
LIMITS = {  # pydantic's names of errors → what a value must be
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "string_pattern_mismatch": "must match {pattern}",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "too_long": "must have at most {max_length} items",
    "tuple_type": "must be a list, as in [a, b]",
    "dict_type": "must be names with values, as in {{a: 1, b: 2}}",
}


class _Loader(yaml.SafeLoader):
    """Safe, and strict where YAML lets the last of two equal keys win."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    twice = next((key for number, key in enumerate(keys) if key in keys[:number]), None)
    if twice is not None:
        raise yaml.constructor.ConstructorError(None, None, f"{twice} stands there twice", node.start_mark)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def available(directory: Path = RECIPES) -> list[str]:
    """Names of the recipes there are, in order."""
    return sorted(path.stem for path in directory.glob("*.yaml"))


def load(name: str, overrides: Mapping[str, Any] | None = None, directory: Path = RECIPES) -> Recipe:
    """The recipe of that name, or at that path, with overrides by field name.

    Raises ConfigurationError that names the field, its value, the nearest valid name and the limit.
    """
    path = find(name, directory)
    return resolve(path, read(path), overrides or {})


def find(name: str, directory: Path = RECIPES) -> Path:
    """The file of a recipe given by name or by path. Raises ConfigurationError when there is none."""
    path = Path(name) if name.endswith(SUFFIXES) else directory / f"{name}.yaml"
    if path.is_file():
        return path
    names = available(directory)
    close = difflib.get_close_matches(path.stem, names, 1, 0.4)
    hint = f"; did you mean {close[0]}?" if close else ""
    there = f" (there are: {', '.join(names)}; or the path of a YAML file)"
    raise ConfigurationError(f"RECIPE={name}: {path} does not exist{hint}{there}")


def read(path: Path) -> dict[Any, Any]:
    """The fields as the file has them. Raises ConfigurationError when it is no mapping in YAML."""
    try:
        fields = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506  a SafeLoader
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror}") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path} is not YAML: {exc}") from exc
    if not isinstance(fields, dict):
        raise ConfigurationError(f"{path} must hold fields as `name: value`, not {type(fields).__name__}")
    return fields


def resolve(path: Path, fields: Mapping[Any, Any], overrides: Mapping[str, Any]) -> Recipe:
    """The recipe of a file's fields and the environment's; without a name it has the file's.

    Raises ConfigurationError with every problem of it.
    """
    for told in seed_names.told(fields):
        log.warning("%s: %s", path, told)
    try:
        return Recipe.model_validate({"name": path.stem, **placed(path, fields), **overrides})
    except CombinationError as exc:
        raise ConfigurationError(f"{path}: {exc}") from exc
    except ValidationError as exc:
        said = dict.fromkeys(problem for error in exc.errors() for problem in _explain(error, overrides))
        raise ConfigurationError(f"{path}: {'; '.join(said)}") from exc


def placed(path: Path, fields: Mapping[Any, Any]) -> dict[Any, Any]:
    """The fields where they belong, with the profiles of the file that they name.

    Raises CombinationError for a field under two names, ConfigurationError for profiles that are in no such
    file.
    """
    own = seed_names.moved(fields)
    section = own.get(SECTION)
    if isinstance(section, dict) and "profiles" in section:
        own[SECTION] = {**section, "profiles": _profiles(path, section["profiles"])}
    return own


def _profiles(recipe: Path, written: Any) -> Any:
    """The agents as the recipe has them, or as the JSON file does that it names.

    Of a list of objects only their role, prompt and with_answer: others of their keys, such as device, are
    left out with a word. Raises ConfigurationError for a file that is no such list.
    """
    path, agents = recipe, written
    if isinstance(written, str):
        path = recipe.parent / written
        try:
            agents = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as exc:
            raise ConfigurationError(f"profiles: {path} cannot be read as JSON: {exc}") from exc
        if not isinstance(agents, list) or not all(isinstance(agent, dict) for agent in agents):
            raise ConfigurationError(
                f"profiles: {path} must hold a list of objects with {', '.join(PROFILE_KEYS)}"
            )
    if not isinstance(agents, list) or not all(isinstance(agent, dict) for agent in agents):
        return agents
    if others := sorted({str(key) for agent in agents for key in agent} - set(PROFILE_KEYS)):
        log.warning("profiles: %s: %s has no meaning here", path, ", ".join(others))
    return [{key: agent[key] for key in PROFILE_KEYS if key in agent} for agent in agents]


def _explain(error: ErrorDetails, overrides: Mapping[str, Any]) -> list[str]:
    context = error.get("ctx", {})
    if isinstance(cause := context.get("error"), CombinationError):
        return [problem.said + _origin(problem.fields, overrides) for problem in cause.problems]
    field, *inner = (str(part) for part in error["loc"]) if error["loc"] else ("recipe",)
    names = [*Recipe.model_fields, *RENAMED]
    if field == SECTION and inner:
        names = [f"{SECTION}.{name}" for name in (*Reinforcement.model_fields, *seed_names.OF_THE_SECTION)]
        field, *inner = f"{SECTION}.{inner[0]}", *inner[1:]
    name = field + "".join(f"[{part}]" for part in inner)
    if error["type"] in ("extra_forbidden", "invalid_key"):
        return [f"{name} is not a field{nearest(name, names)}"]
    if error["type"] == "missing" and (not inner or field.startswith(SECTION)):
        return [f"{name} is missing"]
    value = error["input"]
    said = LIMITS[error["type"]].format(**context) if error["type"] in LIMITS else error["msg"]
    if error["type"] == "literal_error":
        said = f"must be {context['expected']}"
        choices = [choice.strip("'") for choice in context["expected"].replace(" or ", ", ").split(", ")]
        said += nearest(value, choices)
    return [f"{name}={value!r}{_origin((field,), overrides)}: {said}"]


def _origin(fields: tuple[str, ...], overrides: Mapping[str, Any]) -> str:
    """Which of the fields the environment sets, under what name."""
    names = " and ".join(field.upper() for field in fields if field in overrides)
    return f" (from {names} in the environment)" if names else ""
