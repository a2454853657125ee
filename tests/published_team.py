"""ADAPTERS_DIR with a champion that is a team of a tiny model, made without training: B are random."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from services.core.models import ContentRole, Subject
from services.core.settings import Settings
from services.trainer import gate, model, publish
from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement import evaluating, publishing
from services.trainer.reinforcement.figures import Exposure, Training
from services.trainer.reinforcement.profiles import Profile
from services.trainer.reinforcement.team import Team
from services.trainer.suites.formats import Task
from services.trainer.suites.suite import Report, Score
from services.trainer.tasks.choice import TaskChoice
from services.trainer.tasks.store import StoredTask

PROFILES = (
    Profile("analyzer", "Say how to solve it.", with_answer=False),
    Profile("coder", "Write the program.", with_answer=True),
)
ROUND = "round-0001"
FIELDS = {
    "name": "pair",
    "method": "lora",
    "objective": "reinforcement",
    "lora_r": 4,
    "general_suite": None,
}


@dataclass(frozen=True)
class PublishedTeam:
    settings: Settings
    recipe: Recipe
    folder: Path  # of the champion
    manifest: dict[str, Any]
    tasks: dict[ContentRole, list[StoredTask]]


def published(home: Path, base: Path) -> PublishedTeam:
    """A team's first round, promoted."""
    section = {"profiles": [vars(profile) for profile in PROFILES], "context_window": 512}
    recipe = Recipe.model_validate({**FIELDS, "base_model": str(base), "reinforcement": section})
    file = home / f"{recipe.name}.yaml"
    lines = [f"{name}: {'null' if value is None else value}" for name, value in FIELDS.items()]
    file.write_text("\n".join([*lines, f"base_model: {base}", f"reinforcement: {section}"]) + "\n")
    settings = Settings(recipe=str(file), adapters_dir=home / "adapters", cache_dir=home / "cache")
    manifest = release(settings, recipe, ROUND)
    publish.point_current(settings.adapters_dir / recipe.name, ROUND)
    folder = (settings.adapters_dir / recipe.name / ROUND).resolve()
    return PublishedTeam(settings, recipe, folder, manifest, tasks())


def release(settings: Settings, recipe: Recipe, name: str, parent: str | None = None) -> dict[str, Any]:
    """Publish a round as `publishing.publish_team` does; its manifest."""
    source = model.locate(recipe.base_model, None, settings.cache_dir)
    tokenizer = model.load_tokenizer(source)
    team = Team.fresh(model.load_base(recipe, source), tokenizer, recipe, PROFILES)
    number = int(name.removeprefix("round-"))
    generator = torch.Generator().manual_seed(number)
    with torch.no_grad():
        for role in team.roles:
            for weights_name, weight in team.parameters_of(role).items():
                if "lora_B" in weights_name:
                    weight.copy_(0.05 * torch.randn(weight.shape, generator=generator))
    context: Any = SimpleNamespace(
        recipe=recipe,
        track_dir=settings.adapters_dir / recipe.name,
        heart=SimpleNamespace(beat=lambda **_: None),
    )
    round_: Any = SimpleNamespace(
        number=number,
        name=name,
        parent=None if parent is None else SimpleNamespace(directory=parent),
        snapshot_hash=choice().hash,
    )
    reports = {
        Subject.BASE: {evaluating.SUITE: report(0.25)},
        Subject.CANDIDATE: {evaluating.SUITE: report(0.75)},
    }
    verdict = evaluating.verdict(recipe, reports, gate.History())
    finished = publishing.Finished(source, team, PROFILES, training(), verdict, reports, tasks())
    return publishing.publish_team(context, round_, finished)


def task(number: int) -> Task:
    return Task(
        f"easy/{number}", f"def f{number}(x):\n", f"Add {number}.", f"def f{number}(x):\n",
        f"    return x + {number}\n", f"def check(f):\n    assert f(0) == {number}\n", f"f{number}", "check",
    )  # fmt: skip


def tasks() -> dict[ContentRole, list[StoredTask]]:
    """Three that were practised, one that stopped training, six that the gate judged by."""
    parts = {
        ContentRole.TRAIN: range(3),
        ContentRole.VALIDATION: range(3, 4),
        ContentRole.HELD_OUT: range(4, 10),
    }
    return {role: [StoredTask(n, task(n), "easy") for n in numbers] for role, numbers in parts.items()}


def choice() -> TaskChoice:
    parts = tasks()
    return TaskChoice(
        *(
            tuple((each.task_id, bytes.fromhex(each.task.key)) for each in parts[role])
            for role in (ContentRole.TRAIN, ContentRole.VALIDATION, ContentRole.HELD_OUT)
        )
    )


def training() -> Training:
    """Of two tasks of three."""
    return Training(
        steps=5, total_steps=5, best_step=4, weights_step=4, stopped_why=None, collapsed=False,
        rewards=(0.2, 0.4), curve=(),
        exposures={task(0).key: Exposure(8, 3, 400), task(1).key: Exposure(8, 5, 380)},
        episodes=16, tokens=780, seconds=2.0, policy_loss=0.1, kl_reference=0.01,
    )  # fmt: skip


def report(rate: float, tasks_: int = 6, samples: int = 4) -> Report:
    """Every task is solved so often."""
    detail = {
        "samples": samples,
        "passed": round(rate * samples),
        "results": {},
        "completion": "",
        "said": {},
    }
    scores = tuple(
        Score(task(4 + n).key, f"easy/{4 + n}", f"easy/{4 + n}", "pass@1", rate, detail=detail)
        for n in range(tasks_)
    )
    return Report(evaluating.SUITE, "version", scores, 0.1, figures={"pass@1": rate})
