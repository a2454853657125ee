"""Experiments on disk: found, read from YAML, put together with their recipe, problems and metadata."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from services.core.errors import ConfigurationError
from services.core.models import Json
from services.trainer.experiments import metadata as metadatas
from services.trainer.experiments.experiment import (
    HUMAN_EVAL,
    OF_THE_REPORT,
    Arm,
    Comparison,
    Experiment,
)
from services.trainer.experiments.metadata import Metadata
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.combinations import nearest
from services.trainer.recipes.files import LIMITS, RECIPES, SUFFIXES
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import require_fine_tuning
from services.trainer.suites import formats
from services.trainer.suites.formats import Task

EXPERIMENTS = RECIPES / "experiments"
NOT_TRAINING = frozenset({"name", "description"})  # of the recipe


@dataclass(frozen=True)
class Loaded:
    """An experiment with all that it names."""

    path: Path
    experiment: Experiment
    recipe: Recipe
    problems: tuple[Task, ...]
    metadata: Metadata

    @property
    def identity(self) -> Json:
        """All that its results depend on, flat: what was measured under another is not gone on from."""
        fields = self.experiment.model_dump(mode="json", exclude={*OF_THE_REPORT, "recipe", "overrides"})
        recipe = self.recipe.model_dump(mode="json", exclude=set(NOT_TRAINING))
        told = json.dumps(self.metadata if self.experiment.uses_metadata else None, sort_keys=True)
        problems = f"{self.experiment.problems} {formats.version(self.problems)[:12]}"
        return {
            **fields,
            **{f"recipe.{name}": value for name, value in recipe.items()},
            "problems": f"{problems} form {formats.FORM}",
            "metadata": f"{self.experiment.metadata} {hashlib.sha256(told.encode()).hexdigest()[:12]}",
        }


def available(directory: Path = EXPERIMENTS) -> list[Path]:
    """The experiments that come with Ratchet, in order."""
    return sorted(directory.glob("*.yaml"))


def find(name: str, directory: Path = EXPERIMENTS) -> Path:
    """The file of an experiment given by name or by path. Raises ConfigurationError when there is none."""
    path = Path(name) if name.endswith(SUFFIXES) else directory / f"{name}.yaml"
    if path.is_file():
        return path
    names = [one.stem for one in available(directory)]
    there = f" (there are: {', '.join(names)}; or the path of a YAML file)"
    raise ConfigurationError(f"experiment {name}: {path} does not exist{nearest(path.stem, names)}{there}")


def load(path: Path, overrides: Mapping[str, Any] | None = None) -> Loaded:
    """The experiment in that file; `overrides` are the environment's, of fields of the recipe.

    Paths in it count from its own folder. Raises ConfigurationError with every problem of it.
    """
    experiment = read(path)
    recipe = _recipe(path, experiment, overrides or {})
    tasks = problems(path, experiment)
    metadata: Metadata = {}
    if experiment.uses_metadata:
        metadata = metadatas.load(experiment.metadata, path.parent, tasks)
        metadatas.check_names(experiment.annotations, metadata)
    return Loaded(path, experiment, recipe, tasks, metadata)


def read(path: Path) -> Experiment:
    """The experiment alone, without what it names."""
    try:
        return Experiment.model_validate({"name": path.stem, **recipe_files.read(path)})
    except ValidationError as exc:
        raise ConfigurationError(f"{path}: {'; '.join(map(_explain, exc.errors()))}") from exc


def problems(path: Path, experiment: Experiment) -> tuple[Task, ...]:
    """The problems it asks. Raises ConfigurationError when they cannot be read or are too few."""
    asked = experiment.problems
    tasks = formats.human_eval() if asked == HUMAN_EVAL else formats.read(path.parent / asked)
    if experiment.only is not None:
        names = [task.name for task in tasks]
        if unknown := [name for name in experiment.only if name not in names]:
            raise ConfigurationError(f"{path}: only: no problem {unknown[0]}{nearest(unknown[0], names)}")
        tasks = [task for task in tasks if task.name in experiment.only]
    tasks = tasks[: experiment.most_problems]
    if len(tasks) < experiment.folds:
        raise ConfigurationError(
            f"{path}: folds={experiment.folds} of {len(tasks)} problems: at most one fold a problem"
        )
    return tuple(tasks)


def changed(before: Json, now: Json) -> list[str]:
    """The fields that differ, as `folds from 4 to 5`."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [f"{name} from {before.get(name)} to {now.get(name)}" for name in names]


def _recipe(path: Path, experiment: Experiment, overrides: Mapping[str, Any]) -> Recipe:
    base: Mapping[Any, Any] = {"name": experiment.name}
    named = path
    if experiment.recipe is not None:
        beside = path.parent / experiment.recipe
        named = beside if experiment.recipe.endswith(SUFFIXES) else recipe_files.find(experiment.recipe)
        base = {"name": named.stem, **recipe_files.read(named)}
    recipe = recipe_files.resolve(named, {**base, **experiment.overrides}, overrides)
    require_fine_tuning(recipe, f"experiment {experiment.name}")
    if recipe.method == "full":
        raise ConfigurationError(
            f"{path}: method full of {named}: an experiment trains adapters, many from one base;"
            " set method to lora or qlora in overrides"
        )
    return recipe


def _explain(error: ErrorDetails) -> str:
    """One problem in a line, with the nearest name of what is none."""
    parts = [str(part) for part in error["loc"]]
    where = ".".join(parts)
    if error["type"] == "extra_forbidden":
        return f"{where} is not a field{nearest(parts[-1], _fields(parts))}"
    if error["type"] == "missing":
        return f"{where} is missing"
    if not where:
        return error["msg"].removeprefix("Value error, ")
    context = error.get("ctx", {})
    said = LIMITS[error["type"]].format(**context) if error["type"] in LIMITS else error["msg"]
    if error["type"] == "literal_error":
        choices = [choice.strip("'") for choice in context["expected"].replace(" or ", ", ").split(", ")]
        said = f"must be {context['expected']}{nearest(error['input'], choices)}"
    if error["type"] == "too_short":
        said = f"must have at least {context['min_length']} of them"
    return f"{where}={error['input']!r}: {said.removeprefix('Value error, ')}"


def _fields(parts: Sequence[str]) -> list[str]:
    """The names there are where a wrong one stands."""
    inner: Mapping[str, type[BaseModel]] = {"arms": Arm, "comparisons": Comparison}
    owner = inner.get(parts[0], Experiment) if len(parts) > 1 else Experiment
    return list(owner.model_fields)
