"""Names of MARFT's parameters (Liao et al. 2025, 2504.16129) for the fields of a reinforcement recipe. Pure.

They are accepted beside the fields of the recipe or inside its section, so that a list of its parameters can
be taken over as it is. What has no field here is left out with a word.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from services.trainer.recipes.combinations import CombinationError, Problem
from services.trainer.recipes.reinforcement import SECTION, Reinforcement

OF_THE_RECIPE = {  # theirs → the recipe's
    "experiment_name": "name",
    "model_name_or_path": "base_model",
    "lr": "learning_rate",
    **{name: name for name in ("seed", "weight_decay", "max_grad_norm")},
}
OF_THE_SECTION = {  # theirs → the section's
    "algorithm_name": "algorithm",
    "profile_path": "profiles",
    "train_dataset_path": "tasks",
    "dataset_path": "tasks",
    "test_dataset_path": "eval_tasks",
    "horizon": "turns",
}
DERIVED = ("load_in_4bit", "bf16", "gradient_cp_steps", "num_env_steps", "n_agents")
TELLING = {"algorithm_name", "profile_path", "n_agents"}  # nobody else has these
ANYWAY = ("cuda", "use_eval", "use_gae", "use_huber_loss", "use_max_grad_norm")  # true is what is done
INSTEAD = {  # no field here → what there is instead
    "use_wandb": "set WANDB_API_KEY, or WANDB_MODE=offline, in .env",
    "wandb_project": "set WANDB_PROJECT in .env",
    "wandb_entity": "set WANDB_ENTITY in .env",
    "load_path": "a round that was interrupted goes on from its checkpoint by itself",
    "cuda": "a GPU is used where there is one",
    "use_eval": "eval_interval says how often the team is evaluated",
    "use_gae": "advantages are always those of GAE, but for algorithm=grpo",
    "use_huber_loss": "huber_delta says from where the critic's loss is linear",
    "use_max_grad_norm": "max_grad_norm says to what gradients are scaled down",
    "eval_episodes": "every task of the evaluation is solved eval_samples times",
    "n_eval_rollout_threads": "n_rollout_threads counts there too",
    "log_interval": "every iteration is logged",
    "env_name": "tasks names what is practised",
    "dataset_name": "tasks names what is practised",
    "use_vllm": "answers are written by the trainer itself",
    "bf16": "the base is in bf16 on a GPU, the adapters in fp32",
}
SUFFIXES = (".gz", ".json", ".jsonl", ".train", ".test")  # of a file of tasks: the rest is its name


def belongs(fields: Mapping[Any, Any]) -> bool:
    """Whether these are the fields of a reinforcement recipe: by objective, section or their own names."""
    if "objective" in fields:
        return bool(fields["objective"] == SECTION)
    return fields.get(SECTION) is not None or bool(TELLING & fields.keys())


def moved(fields: Mapping[Any, Any]) -> dict[Any, Any]:
    """The fields of a reinforcement recipe where they belong, any other recipe's as they are.

    Doing it twice does no more. Raises CombinationError for a field that is there under two names, and for a
    value that cannot be read.
    """
    fields = dict(fields)
    inner = fields.get(SECTION)
    if not belongs(fields) or not isinstance(inner, dict | None):
        return fields
    inner = dict(inner or {})
    written = [(name, fields) for name in list(fields)] + [(name, inner) for name in list(inner)]
    placed: dict[Any, Any] = {"objective": SECTION}
    section: dict[Any, Any] = {}
    for name, source in written:
        if name in (SECTION, "objective") or name in _left_out({name: source[name]}):
            continue
        to, ours, value = _place(name, source[name], inside=source is inner)
        target = section if to == SECTION else placed
        if ours in target:
            raise _problem(ours, f"{name} is another name of {ours}, which is there already: leave one out")
        target[ours] = value
    _count_iterations(section)
    return {**placed, SECTION: section}


def told(fields: Mapping[Any, Any]) -> Iterator[str]:
    """What of the fields is left out, and what there is instead."""
    if not belongs(fields):
        return
    inner = fields.get(SECTION)
    every = {**fields, **inner} if isinstance(inner, dict) else fields
    for name in _left_out(every):
        if not (name in ANYWAY and every[name] is True) and not (name == "bf16" and every[name] is True):
            yield f"{name} is no field of a recipe: {INSTEAD[name]}"


def _left_out(fields: Mapping[Any, Any]) -> list[Any]:
    return [name for name in fields if name in INSTEAD]


def _place(name: Any, value: Any, *, inside: bool) -> tuple[str, Any, Any]:
    """Section or recipe, the field's name there, and its value."""
    if name in OF_THE_RECIPE:
        return "recipe", OF_THE_RECIPE[name], value
    if name == "load_in_4bit":
        return "recipe", "method", "qlora" if _flag(name, value) else "lora"
    if name == "gradient_cp_steps":  # theirs splits a step to save memory
        return "recipe", "recomputation", "full" if _number(name, value) > 1 else "none"
    if name in OF_THE_SECTION:
        ours = OF_THE_SECTION[name]
        return SECTION, ours, _set_name(value) if ours in ("tasks", "eval_tasks") else value
    if inside or name in Reinforcement.model_fields or name in DERIVED:
        return SECTION, name, value
    return "recipe", name, value


def _count_iterations(section: dict[Any, Any]) -> None:
    """num_env_steps are turns of the team in all."""
    if "num_env_steps" not in section:
        return
    if "iterations" in section:
        raise _problem("iterations", "num_env_steps says iterations another way: leave one out")
    steps = _number("num_env_steps", section.pop("num_env_steps"))
    each = [
        _number(name, section.get(name, Reinforcement.model_fields[name].default))
        for name in ("n_rollout_threads", "episode_length")
    ]
    section["iterations"] = max(1, math.ceil(steps / max(1, math.prod(each))))


def _set_name(value: Any) -> Any:
    """The name of a task set that is in a file: the file's, without what says its format and split."""
    if not isinstance(value, str):
        return value
    path = PurePosixPath(value)
    while path.suffix in SUFFIXES:
        path = path.with_suffix("")
    return path.name


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _problem(name, f"{name}={value!r} must be true or false")
    return value


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise _problem(name, f"{name}={value!r} must be a number above 0")
    return value


def _problem(field: Any, said: str) -> CombinationError:
    return CombinationError([Problem((str(field),), said)])
