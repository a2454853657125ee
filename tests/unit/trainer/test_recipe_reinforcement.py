"""The section `reinforcement` of a recipe: its defaults, what it refuses, what others call its fields."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from services.core.errors import ConfigurationError
from services.trainer.recipes.files import load, resolve
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement, require_fine_tuning, section
from services.trainer.recipes.seed_names import moved

PATH = Path("recipes/team.yaml")
OF_THE_SEED = {  # README of the seed, section 3.2, with its later sections' names
    "algorithm_name": "APPO", "experiment_name": "qwen_coding_duo", "seed": 42, "cuda": True,
    "n_rollout_threads": 8, "num_env_steps": 1_000_000, "episode_length": 200,
    "model_name_or_path": "Qwen/Qwen2.5-Coder-1.5B-Instruct", "n_agents": 2,
    "train_dataset_path": "data/bigcodebench_marft.json",
    "test_dataset_path": "data/bigcodebench_test_marft.json", "lr": 5e-7, "critic_lr": 5e-4, "ppo_epoch": 5,
    "num_mini_batch": 4, "use_eval": True, "eval_interval": 10, "save_interval": 50, "use_wandb": True,
    "wandb_project": "qwen-coding-marft", "wandb_entity": "me", "reward_type": "binary",
    "load_in_4bit": True, "bf16": True, "context_window": 2048, "max_new_tokens": 512,
    "gradient_cp_steps": 2, "use_linear_lr_decay": True, "kl_threshold": 5e-4, "use_clipped_value_loss": True,
}  # fmt: skip


def team(**fields: Any) -> Recipe:
    return resolve(PATH, {"base_model": "./m", "objective": "reinforcement", "method": "lora", **fields}, {})


def of(**fields: Any) -> Reinforcement:
    return section(team(reinforcement=fields))


def refused(**fields: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        team(**fields)
    return str(caught.value)


def test_without_a_section_there_is_one_of_defaults() -> None:
    assert section(team()) == Reinforcement()
    assert section(team()).roles == ("analyzer", "coder")


def test_a_section_alone_says_the_objective() -> None:
    assert Recipe(name="x", base_model="./m", reinforcement={}).objective == "reinforcement"


def test_a_recipe_that_trains_on_code_has_none() -> None:
    recipe = Recipe(name="x", base_model="./m")
    assert recipe.reinforcement is None
    with pytest.raises(ConfigurationError, match="objective=completion_pairs has no section reinforcement"):
        section(recipe)


def test_the_seeds_whole_list_of_parameters_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    """Each has its place; what has none is told with what there is instead."""
    with caplog.at_level(logging.WARNING):
        recipe = resolve(PATH, OF_THE_SEED, {})
    asked = section(recipe)
    assert (recipe.name, recipe.base_model, recipe.seed) == (
        "qwen_coding_duo", "Qwen/Qwen2.5-Coder-1.5B-Instruct", 42
    )  # fmt: skip
    assert (recipe.method, recipe.recomputation, recipe.learning_rate) == ("qlora", "full", 5e-7)
    assert (asked.algorithm, asked.iterations) == ("appo", 625)  # 1,000,000 / (8 · 200)
    assert (asked.tasks, asked.eval_tasks) == ("bigcodebench_marft", "bigcodebench_test_marft")
    assert (asked.critic_lr, asked.ppo_epoch, asked.num_mini_batch, asked.kl_threshold) == (5e-4, 5, 4, 5e-4)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 3
    assert any("wandb_project is no field of a recipe: set WANDB_PROJECT" in each for each in told)


def test_the_seeds_names_are_read_inside_the_section_too() -> None:
    recipe = team(reinforcement={"algorithm_name": "TPPO", "lr": 1e-5, "seed": 7})
    assert (section(recipe).algorithm, recipe.learning_rate, recipe.seed) == ("tppo", 1e-5, 7)


def test_moving_names_twice_does_no_more() -> None:
    once = moved(OF_THE_SEED)
    assert moved(once) == once


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"lr": 1e-5, "learning_rate": 1e-4}, "learning_rate"),
        ({"algorithm_name": "APPO", "reinforcement": {"algorithm": "grpo"}}, "algorithm"),
        ({"num_env_steps": 100, "reinforcement": {"iterations": 5}}, "num_env_steps says iterations"),
    ],
)
def test_a_field_under_two_names_is_named(fields: dict[str, Any], said: str) -> None:
    assert said in refused(**fields)
    assert "leave" in refused(**fields)


def test_another_recipe_does_not_know_the_seeds_names() -> None:
    with pytest.raises(ConfigurationError, match="lr is not a field"):
        resolve(PATH, {"base_model": "./m", "lr": 1e-4}, {})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"clip_parm": 0.1}, "clip_parm is not a field: did you mean reinforcement.clip_param?"),
        ({"algorithm": "dppo"}, "did you mean tppo?"),
        ({"gamma": 3}, "reinforcement.gamma=3: must be at most 1"),
        ({"iterations": True}, "reinforcement.iterations=True: must not be true or false"),
        ({"n_agents": 3}, "n_agents=3, but there are 2 profiles"),
        ({"frozen_roles": ["boss"]}, "frozen_roles: boss is no role of the profiles"),
        ({"frozen_roles": ["analyzer", "coder"]}, "nothing would be trained"),
        ({"profiles": [{"role": "coder", "prompt": "x"}]}, "profiles[0][with_answer] is missing"),
        ({"profiles": [{"role": "one", "prompt": "x", "with_answer": False}]}, "with_answer"),
        ({"algorithm": "grpo", "group_size": 1}, "at least 2"),
        ({"algorithm": "grpo", "critic_lr": 1e-3}, "critic_lr=0.001 has no effect with algorithm=grpo"),
        ({"group_size": 3}, "group_size=3 does not divide"),
        ({"algorithm": "tppo", "normalization_mode": "sum"}, "has no effect with algorithm=tppo"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(fields: dict[str, Any], said: str) -> None:
    assert said in refused(reinforcement=fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"method": "full"}, "method=full: objective=reinforcement trains an adapter for each agent"),
        ({"init_lora_weights": "pissa"}, "pissa changes the base that all agents share"),
        ({"fp8": True}, "fp8=true is too coarse"),
        ({"distributed": "fsdp2"}, "runs on one device"),
        ({"lora_dropout": 0.1}, "lora_dropout=0.1 has no effect"),
        ({"optimizer": "adamw_8bit"}, "optimizer=adamw_8bit has no effect"),
        ({"max_length": 512}, "max_length=512 has no effect with objective=reinforcement"),
        ({"completion_items": 4}, "completion_items=4 has no effect"),
        ({"languages": ["python"]}, "languages=[python] has no effect"),
    ],
)
def test_fields_without_effect_beside_a_team_are_refused(fields: dict[str, Any], said: str) -> None:
    assert said in refused(**fields)


def test_a_section_beside_another_objective_is_refused() -> None:
    assert "reinforcement has no effect with objective=cpt" in refused(objective="cpt", reinforcement={})


def test_grpo_has_groups_and_a_wider_clip_by_default() -> None:
    asked = of(algorithm="GRPO")
    assert (asked.algorithm, asked.group_size, asked.clip_high) == ("grpo", 8, 0.28)
    assert (of().group_size, of().clip_high) == (1, 0.2)


def test_profiles_are_read_from_the_file_that_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """From the recipe's folder; the seed's `device` is left out with a word."""
    profiles = [
        {"role": "planner", "prompt": "Plan.", "with_answer": False, "device": "cuda:0"},
        {"role": "writer", "prompt": "Write.", "with_answer": True, "device": "cuda:1"},
    ]
    (tmp_path / "duo.json").write_text(json.dumps(profiles))
    path = tmp_path / "duo.yaml"
    path.write_text("base_model: ./m\nalgorithm_name: APPO\nprofile_path: duo.json\nn_agents: 2\n")
    with caplog.at_level(logging.WARNING):
        asked = section(load(str(path)))
    assert asked.roles == ("planner", "writer")
    assert "device has no meaning here" in caplog.text


@pytest.mark.parametrize("text", ["{", "{}", "[1]"])
def test_a_file_of_profiles_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "duo.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"profiles: .*duo\.json"):
        resolve(tmp_path / "x.yaml", {"base_model": "./m", "reinforcement": {"profiles": "duo.json"}}, {})


def test_points_of_pass_rate_are_expected_not_bits() -> None:
    """Three hundredths could never be seen of a few dozen tasks."""
    assert team().expected_improvement == 0.1
    assert team(expected_improvement=0.2).expected_improvement == 0.2
    assert Recipe(name="x", base_model="./m").expected_improvement == 0.03


def test_an_open_round_keeps_its_team() -> None:
    """As the ledger has it."""
    recipe = team(reinforcement={"algorithm": "grpo", "frozen_roles": ["analyzer"]})
    assert Recipe.model_validate(recipe.model_dump(mode="json")) == recipe


def test_commands_about_code_say_that_a_team_has_none() -> None:
    with pytest.raises(ConfigurationError, match="`ratchet samples` is of recipes that train on code"):
        require_fine_tuning(team(), "`ratchet samples`")
    require_fine_tuning(Recipe(name="x", base_model="./m"), "`ratchet samples`")
