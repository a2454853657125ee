"""Whether a small real model gets better: SmolLM2-135M on `easy` tasks, judged on kinds that are new to it.

The recipe is `demo-marl` with other sizes. Held-out tasks are asked before and after, `samples` times each,
with the same draws; the interval is of the paired differences by task (percentile bootstrap), and covers
which tasks were asked, not which seed was trained with.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.marl_chart import Curve, curves
from services.core.sandbox import Sandbox
from services.core.settings import PROJECT
from services.trainer import model
from services.trainer.experiments.significance import bootstrap_interval
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement, section
from services.trainer.reinforcement.evaluating import evaluate
from services.trainer.reinforcement.figures import Evaluation, Hooks, Iteration
from services.trainer.reinforcement.loop import Setup, train
from services.trainer.reinforcement.optimizers import Optimizers
from services.trainer.reinforcement.rewards import Rewards
from services.trainer.reinforcement.rollout import Rollouts
from services.trainer.reinforcement.team import Team
from services.trainer.suites.formats import Task
from services.trainer.tasks import easy
from services.trainer.tasks.splits import is_set_aside

RECIPE = "demo-marl"
CACHE = PROJECT / ".ratchet" / "cache"
RESAMPLES = 10_000
DRAW = 7  # seed of what is asked of held-out tasks, before and after


@dataclass(frozen=True)
class Asked:
    """How long, and how much at a time."""

    algorithm: str = "appo"
    iterations: int = 60
    episodes: int = 128  # an iteration
    group_size: int = 8
    learning_rate: float = 2e-4
    new_tokens: int = 128  # of an answer
    samples: int = 8  # of a held-out task
    tasks: int | None = None  # of each part at most
    allow_unsandboxed: bool = False

    def recipe(self) -> Recipe:
        base = recipe_files.load(RECIPE)
        changed = section(base).model_dump() | {
            "algorithm": self.algorithm,
            "n_rollout_threads": self.episodes,
            "group_size": self.group_size,
            "iterations": self.iterations,
            "max_new_tokens": self.new_tokens,
            "temperature": 1.0,
            "mask_truncated": True,
            "eval_interval": max(1, self.iterations // 6),
            "save_interval": max(1, self.iterations // 6),
            "eval_samples": 4,
        }
        return base.model_copy(
            update={"learning_rate": self.learning_rate, "reinforcement": Reinforcement(**changed)}
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Of --part curve."""
    parser.add_argument("--algorithm", choices=["appo", "tppo", "grpo"], default=Asked.algorithm)
    parser.add_argument("--curve-iterations", type=int, default=Asked.iterations)
    parser.add_argument("--episodes", type=int, default=Asked.episodes)
    parser.add_argument("--group-size", type=int, default=Asked.group_size)
    parser.add_argument("--learning-rate", type=float, default=Asked.learning_rate)
    parser.add_argument("--answer-tokens", type=int, default=Asked.new_tokens)
    parser.add_argument("--samples", type=int, default=Asked.samples)
    parser.add_argument("--tasks", type=int, help="of each part at most")


def asked_for(options: argparse.Namespace) -> Asked:
    """As the options say."""
    return Asked(
        options.algorithm, options.curve_iterations, options.episodes, options.group_size,
        options.learning_rate, options.answer_tokens, options.samples, options.tasks,
        options.allow_unsandboxed,
    )  # fmt: skip


def measure(asked: Asked, picture: Path | None) -> dict[str, Any]:
    """Pass rates of held-out tasks before and after, their difference with its interval, and speeds."""
    recipe = asked.recipe()
    settings = section(recipe)
    parts = _parts(asked.tasks)
    source = model.locate(recipe.base_model, recipe.revision, CACHE)
    team = Team.fresh(
        model.load_base(recipe, source), model.load_tokenizer(source), recipe, settings.profiles
    )
    heard: list[Iteration] = []
    with (
        Sandbox.open(None, allow_unsandboxed=asked.allow_unsandboxed) as sandbox,
        Rewards(sandbox, settings.reward_type) as rewards,
        tempfile.TemporaryDirectory() as folder,
    ):
        rollouts = Rollouts(team, settings.profiles, settings, recipe, rewards)
        before = _rates(rollouts, parts["held_out"], asked.samples)
        setup = Setup(
            team,
            Optimizers(team, recipe),
            rollouts,
            parts["train"],
            parts["validation"],
            recipe,
            Path(folder),
        )
        began = time.perf_counter()
        training = train(setup, Hooks(on_iteration=_telling(heard), on_evaluation=_tell_evaluation))
        seconds = time.perf_counter() - began
        after = _rates(rollouts, parts["held_out"], asked.samples)
    differences = [b - a for a, b in zip(before, after, strict=True)]
    low, high = bootstrap_interval(differences, confidence=0.95, resamples=RESAMPLES)
    first, last = statistics.fmean(before), statistics.fmean(after)
    if picture is not None:
        note = (
            f"Held-out tasks passed: {first:.3f} before, {last:.3f} after,"
            f" {last - first:+.3f} (95 % interval {low:+.3f} to {high:+.3f})"
        )
        evaluated = [one.pass_rate for one in training.curve]
        shown = [
            Curve("reward of rollouts", training.rewards, first=1),
            Curve("pass rate of validation tasks", evaluated, every=settings.eval_interval),
        ]
        title = f"SmolLM2-135M as a team of two agents on easy tasks, {settings.algorithm.upper()}"
        picture.write_text(curves(title, "iterations", shown, note), encoding="utf-8")
    return {
        "curve_reward_first": round(training.rewards[0], 4),
        "curve_reward_last": round(statistics.fmean(training.rewards[-5:]), 4),
        "held_out_tasks": len(before),
        "held_out_before": round(first, 4),
        "held_out_after": round(last, 4),
        "held_out_difference": round(last - first, 4),
        "held_out_low": round(low, 4),
        "held_out_high": round(high, 4),
        "curve_iterations": training.steps,
        "curve_weights_step": training.weights_step,
        "curve_stopped_why": training.stopped_why,
        "curve_seconds_per_step": round(seconds / max(1, training.steps), 2),
        "curve_tokens_per_s": round(statistics.median(one.tokens_per_s for one in heard), 1),
    }


def _parts(most: int | None) -> dict[str, list[Task]]:
    """Trained on, looked at while training, and judged by; no kind of task is in two of them."""
    every = easy.tasks()
    train_ = [each for each in every if each.split == "train"]
    return {
        "train": [each.task for each in train_ if not is_set_aside(each.group)][:most],
        "validation": [each.task for each in train_ if is_set_aside(each.group)][:most],
        "held_out": [each.task for each in every if each.split == "test"][:most],
    }


def _rates(rollouts: Rollouts, tasks: Sequence[Task], samples: int) -> list[float]:
    return [score.value for score in evaluate(rollouts, tasks, samples, DRAW).scores]


def _telling(heard: list[Iteration]) -> Any:
    def tell(figures: Iteration) -> None:
        heard.append(figures)
        print(
            f"iteration {figures.step}: reward {figures.reward:.3f}, solved {figures.solved:.3f},"
            f" KL {figures.update.get('kl_reference', 0):.3f}, {figures.rollout_seconds:.1f} +"
            f" {figures.update_seconds:.1f} s",
            flush=True,
        )

    return tell


def _tell_evaluation(figures: Evaluation) -> None:
    print(f"validation after {figures.step}: {figures.pass_rate:.3f}", flush=True)
