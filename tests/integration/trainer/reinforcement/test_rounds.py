"""A whole round of reinforcement: from files of tasks to a published team that solves more of others."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.core.db import Database
from services.core.errors import ConfigurationError, SandboxError
from services.core.models import Subject
from services.trainer import lineage, publish
from services.trainer.engine.distributed import Distribution
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import section
from services.trainer.reinforcement.round import begin
from services.trainer.rounds import run
from tests.integration.trainer.reinforcement.conftest import Contexts, KilledError
from tests.integration.trainer.test_round import rows

POINTS = (  # in the order in which a round passes them
    "round.after_open",  # tasks chosen, nothing else
    "train.after_step",
    "train.before_seal",  # a checkpoint that is there but not marked as complete
    "train.after_checkpoint",
    "round.after_train",
    "publish.after_rename",  # the team has its name, the ledger does not know it
    "publish.after_commit",  # the ledger knows it, `current` does not point to it
)
PRACTISING = [
    name for name in recipe_files.available() if recipe_files.load(name).objective == "reinforcement"
]
SHORT = {  # what makes a round one of seconds; all else is the recipe's
    "iterations": 1, "n_rollout_threads": 4, "episode_length": 1, "eval_samples": 1, "max_new_tokens": 8,
    "context_window": 256,
}  # fmt: skip
ROLES = ("analyzer", "coder")


class OfTwo(Distribution):
    world = 2


def with_section(recipe: Recipe, **changed: Any) -> Recipe:
    return recipe.model_copy(update={"reinforcement": section(recipe).model_copy(update=changed)})


def weights(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of weights."""
    found = sorted(folder.rglob("*.safetensors"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.mark.usefixtures("lenient_gate")
def test_a_team_is_trained_judged_and_published(contexts: Contexts, database: Database) -> None:
    """Release, ledger and curves say the same."""
    context = contexts()
    run(context)
    (round_,) = rows(database, "SELECT * FROM rounds")
    assert round_.state == "promoted", round_.verdict
    assert set(round_.verdict["pass_rates"]) == {"base", "candidate"}

    current = context.track_dir / "current"
    manifest = publish.verify(current)
    assert (manifest["kind"], manifest["roles"]) == ("team", list(ROLES))
    assert manifest["snapshot_hash"] == round_.snapshot_hash
    assert {f"{role}/adapter_model.safetensors" for role in ROLES} <= set(manifest["files"])

    summary = json.loads((current / "summary.json").read_text())
    beside_events = context.settings.logs_dir / "tensorboard" / "team" / "round-0001"
    assert json.loads((beside_events / "summary.json").read_text()) == summary
    assert list(beside_events.glob("events.*"))
    assert round_.training == summary
    assert summary["steps"] == 4

    points = rows(database, "SELECT kind, step, metrics FROM progress ORDER BY kind, step")
    assert [(point.kind, point.step) for point in points] == [
        *(("eval", step) for step in (0, 2, 4)), *(("train", step) for step in range(1, 5))
    ]  # fmt: skip
    last = points[-1].metrics
    assert {"loss", "reward", "solved", "kl_reference", "entropy", "value_loss", "tokens_per_second"} <= set(
        last
    )
    assert set(last["roles"]) == set(ROLES)
    assert list(summary["rewards"]) == [point.metrics["reward"] for point in points[3:]]

    practised = rows(database, "SELECT coalesce(sum(episodes), 0) AS episodes FROM task_exposures")
    assert practised[0].episodes == 8 * summary["weights_step"]
    assert rows(database, "SELECT 1 FROM solutions")
    subjects = rows(database, "SELECT subject FROM suite_reports WHERE suite = 'tasks'")
    assert {Subject(row.subject) for row in subjects} == {Subject.BASE, Subject.CANDIDATE}


@pytest.mark.usefixtures("lenient_gate")
def test_a_round_killed_at_every_point_ends_as_if_it_was_not(
    contexts: Contexts, team_recipe: Recipe, database: Database, kill_at: Callable[[str], None]
) -> None:
    """Attempt after attempt gets one point further; the release has the same weights, bit for bit."""
    at_once = contexts(team_recipe.model_copy(update={"name": "at-once"}))
    run(at_once)
    for point in POINTS:
        kill_at(point)
        with pytest.raises(KilledError):
            run(contexts())
    kill_at("")
    context = contexts()
    context.first_books.ledger.champions(context.track_dir).follow()  # as the daemon does
    published = context.track_dir / "current"
    assert weights(published) == weights(at_once.track_dir / "current")
    manifest = publish.verify(published)
    ((recorded,),) = rows(database, "SELECT manifest FROM adapters WHERE track = 'team'")
    assert manifest == recorded
    assert not list(context.track_dir.glob(f"{publish.TEMPORARY}*"))


@pytest.mark.usefixtures("lenient_gate", "practise_on")
def test_a_second_round_goes_on_from_the_champion(
    contexts: Contexts, team_recipe: Recipe, database: Database
) -> None:
    """Judged beside it, with nothing new to practise, because it was asked for."""
    short = with_section(team_recipe, iterations=1)
    run(contexts(short))
    run(contexts(short))
    first, second = rows(database, "SELECT * FROM rounds ORDER BY number")
    assert second.parent_adapter_id is not None
    assert set(second.verdict["pass_rates"]) == {"base", "champion", "candidate"}
    assert second.verdict["pass_rates"]["champion"] == first.verdict["pass_rates"]["candidate"]


def test_without_anything_new_no_round_begins(contexts: Contexts, database: Database) -> None:
    """Every task of the set was in a round, even if that was set aside."""
    context = contexts()
    assert begin(context) is not None
    context.first_books.ledger.fail(context.first_books.lease, "set aside")
    run(context)
    assert len(rows(database, "SELECT 1 FROM rounds")) == 1


@pytest.mark.parametrize("name", PRACTISING)
def test_a_recipe_that_ships_makes_a_round(
    name: str, contexts: Contexts, team_folder: Path, team_recipe: Recipe, database: Database, tmp_path: Path
) -> None:
    """Its algorithm, method and roles, on a tiny model and its tasks."""
    fields = recipe_files.read(recipe_files.find(name))
    short = {**fields["reinforcement"], **SHORT, "tasks": "toy"}
    changed = {"base_model": team_recipe.base_model, "suites": [], "general_suite": None}
    path = tmp_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump({**fields, **changed, "reinforcement": short}), encoding="utf-8")
    run(contexts(recipe_files.load(str(path))))
    ((state,),) = rows(database, "SELECT state FROM rounds")
    assert state in {"promoted", "refused"}
    assert rows(database, "SELECT 1 FROM progress WHERE kind = 'train'")


def test_several_processes_are_refused_before_a_round_opens(contexts: Contexts, database: Database) -> None:
    several = dataclasses.replace(contexts(), distribution=OfTwo())
    with pytest.raises(ConfigurationError, match="runs in one process, here are 2: set NPROC_PER_NODE=1"):
        begin(several)
    assert rows(database, "SELECT 1 FROM rounds") == []


def test_without_a_sandbox_no_round_opens(contexts: Contexts, database: Database, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="nobody"):
        run(contexts(sandbox_socket=tmp_path / "nobody"))
    assert rows(database, "SELECT 1 FROM rounds") == []


def test_a_task_set_that_is_not_there_is_named(contexts: Contexts, team_recipe: Recipe) -> None:
    """With the nearest that is."""
    with pytest.raises(ConfigurationError, match="no task set 'toys', the nearest is toy"):
        run(contexts(with_section(team_recipe, tasks="toys")))


def test_a_champion_of_other_roles_is_refused(team_recipe: Recipe) -> None:
    """Its adapters have no place in this team."""
    manifest = {"base_model": team_recipe.base_model, "recipe": {"lora_r": 4, "objective": "cpt"}}
    with pytest.raises(
        ConfigurationError, match="is one model, the recipe now trains a team of analyzer and coder"
    ):
        lineage.check_champion(team_recipe, manifest)
