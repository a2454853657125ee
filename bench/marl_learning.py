"""Whether a team learns by rewards alone: the toy of tests/toy_team.py, each way of learning an arm.

Everything but the size is what a round uses: batched writing, programs run in the sandbox (equal ones once),
update, checkpoints, the loop. `reward_before` and `reward_after` are pass rates over 258 fresh draws
of the six specifications; the model starts at about 0.24, and at 1 every program would pass.
"""

import contextlib
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from services.core.sandbox import Sandbox
from services.trainer import model
from services.trainer.interruption import Interrupted
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement, section
from services.trainer.reinforcement.backend import OwnWriter
from services.trainer.reinforcement.figures import Hooks, Iteration, Training
from services.trainer.reinforcement.loop import Setup, train
from services.trainer.reinforcement.optimizers import Optimizers
from services.trainer.reinforcement.rewards import Rewards
from services.trainer.reinforcement.rollout import Rollouts
from services.trainer.reinforcement.team import Team
from tests import toy_team

SAMPLES = 43  # of each specification before and after: 258 episodes, a standard error of 0.03
ROWS = 96  # episodes of an iteration: sixteen of each specification
MEMORY_BYTES = 2**28  # for all rows at once: without a figure they are sixteen on the CPU
FRESH = 10_000  # seeds of these draws, apart from the training's


@dataclass(frozen=True)
class Arm:
    """A way of learning."""

    algorithm: str = "appo"
    learning_rate: float = 1.5e-3
    iterations: int = 30
    more: Mapping[str, Any] = field(default_factory=dict)  # of the section, beside the toy's own

    def recipe(self, base: Path, seed: int = 0) -> Recipe:
        settings: dict[str, Any] = {
            "algorithm": self.algorithm,
            "profiles": [vars(profile) for profile in toy_team.PROFILES],
            "n_rollout_threads": ROWS,
            "max_new_tokens": 5,
            "context_window": 32,
            "iterations": self.iterations,
            "eval_interval": self.iterations,
            "eval_samples": 16,
            "save_interval": self.iterations,
            "kl_coef": 0.05,
            "max_reference_kl": 2.0,  # from 0.36 to 1 for a letter is a nat by itself
            **self.more,
        }
        return Recipe(
            name="toy",
            base_model=str(base),
            method="lora",
            objective="reinforcement",
            lora_r=8,
            lora_alpha=16,
            learning_rate=self.learning_rate,
            weight_decay=0.0,
            batch_size=ROWS,
            optimizer="adamw",
            early_stopping_patience=100,
            general_suite=None,
            seed=seed,
            reinforcement=Reinforcement(**settings),
        )


ARMS: Mapping[str, Arm] = {
    "appo": Arm("appo"),
    "tppo": Arm("tppo"),
    "grpo": Arm("grpo"),
    "analyzer_frozen": Arm("appo", more={"frozen_roles": ["analyzer"]}),
    "too_fast": Arm("appo", learning_rate=5e-2, more={"kl_coef": 0.0, "eval_interval": 5}),
}


RESUMED = Arm("tppo", iterations=6, more={"num_mini_batch": 2, "save_interval": 2, "eval_interval": 4})


@dataclass(frozen=True)
class Learned:
    """What became of a team."""

    before: float  # pass rates of fresh draws
    after: float
    training: Training
    iterations: tuple[Iteration, ...]
    seconds: float  # of the training, its evaluations among them
    cpu_seconds: float  # of that, of this process: without waiting, and without the sandbox


class Learner:
    """A team of the toy on a base, as often as it is asked for."""

    def __init__(self, base: Path, rewards: Rewards) -> None:
        self._base = base
        self._rewards = rewards
        self._tasks = toy_team.tasks()

    def setup(self, arm: Arm, folder: Path, seed: int = 0) -> Setup:
        """A fresh team, ready to be trained."""
        recipe = arm.recipe(self._base, seed)
        settings = section(recipe)
        source = model.locate(recipe.base_model, None, folder)
        team = Team.fresh(
            model.load_base(recipe, source), model.load_tokenizer(source), recipe, settings.profiles
        )
        rollouts = Rollouts(
            team,
            settings.profiles,
            settings,
            recipe,
            self._rewards,
            prompting=toy_team.Prompts(team.tokenizer),
            extract=toy_team.program,
            backend=OwnWriter(team, MEMORY_BYTES),
        )
        return Setup(team, Optimizers(team, recipe), rollouts, self._tasks, self._tasks, recipe, folder)

    def learn(self, arm: Arm, seed: int = 0) -> Learned:
        """Before, training, after."""
        with tempfile.TemporaryDirectory() as folder:
            setup = self.setup(arm, Path(folder), seed)
            heard: list[Iteration] = []
            before = self._pass_rate(setup, FRESH + 2 * seed)
            began, busy = time.perf_counter(), time.process_time()
            training = train(setup, Hooks(on_iteration=heard.append))
            seconds, busy = time.perf_counter() - began, time.process_time() - busy
            after = self._pass_rate(setup, FRESH + 2 * seed + 1)
            return Learned(before, after, training, tuple(heard), seconds, busy)

    def resume_weight_diff(self, arm: Arm, at: int) -> float:
        """Largest difference of a weight after a training stopped in iteration `at` and gone on with; 0."""
        with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as parted:
            setup = self.setup(arm, Path(whole))
            train(setup, Hooks())
            with contextlib.suppress(Interrupted):
                train(self.setup(arm, Path(parted)), stopping_after(at))
            resumed = self.setup(arm, Path(parted))
            train(resumed, Hooks())
            other = weights(resumed)
            return max(float((one - other[name]).abs().max()) for name, one in weights(setup).items())

    def _pass_rate(self, setup: Setup, seed: int) -> float:
        episodes = setup.rollouts.collect(self._tasks, samples=SAMPLES, seed=seed)
        return sum(episode.solved for episode in episodes) / len(episodes)


def stopping_after(step: int) -> Hooks:
    """Hooks that ask to stop in the middle of the rollout after an iteration."""
    done: list[Iteration] = []

    def check() -> None:
        if len(done) >= step:
            raise Interrupted

    return Hooks(on_iteration=done.append, check=check)


def weights(setup: Setup) -> dict[str, torch.Tensor]:
    """Every trained tensor: the roles' adapters and the value head."""
    team = setup.team
    named = {name: one for role in team.roles for name, one in team.parameters_of(role).items()}
    if team.critic is not None:
        named |= {f"critic.{name}": one for name, one in team.critic.named_parameters()}
    return {name: one.detach().clone() for name, one in named.items()}


@contextlib.contextmanager
def learner() -> Iterator[Learner]:
    """The warmed-up base and a sandbox of its own, for as long as this is open."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Sandbox.open(None) as sandbox,
        Rewards(sandbox) as rewards,
    ):
        yield Learner(toy_team.make(Path(folder)), rewards)
