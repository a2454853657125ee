"""The loop of reinforcement: evaluate, checkpoint, stop?, collect, update, log. Reads downward, in `train`.

Everything random in an iteration follows from seed, round and its number, so that an interrupted training
goes on bit for bit from its last whole iteration.
"""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from services.core.process import failpoint
from services.trainer.engine import randomness
from services.trainer.interruption import Interrupted
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import section
from services.trainer.reinforcement import stopping
from services.trainer.reinforcement.drawing import drawn
from services.trainer.reinforcement.episodes import Episode, of_role, roles
from services.trainer.reinforcement.figures import Evaluation, Hooks, Iteration, Training
from services.trainer.reinforcement.optimizers import Optimizers
from services.trainer.reinforcement.rollout import Rollouts
from services.trainer.reinforcement.saving import Saving
from services.trainer.reinforcement.state import State
from services.trainer.reinforcement.team import Team
from services.trainer.reinforcement.telling import Telling
from services.trainer.reinforcement.update import update
from services.trainer.samples.chance import draw
from services.trainer.suites.formats import Task

SEEDS = 2**31
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Setup:
    """A team ready to be trained, on what and where."""

    team: Team
    optimizers: Optimizers
    rollouts: Rollouts
    tasks_train: Sequence[Task]
    tasks_validation: Sequence[Task]  # none: no early stopping, the last weights stay
    recipe: Recipe
    folder: Path  # of checkpoints
    round_number: int = 1


def train(setup: Setup, hooks: Hooks) -> Training:
    """Train the team that `setup` holds and leave the best of its states in it.

    Resumes from the newest valid checkpoint. Asked to stop (`hooks.check` raises Interrupted) it saves the
    last whole iteration and passes that on.
    """
    loop = _Loop(setup, hooks)
    try:
        loop.begin()
        while True:
            if loop.is_evaluation_due():
                loop.evaluate()
            if loop.is_checkpoint_due():
                loop.save()
            if loop.is_over():
                break
            loop.iterate()
        loop.load_best()
        return loop.summary()
    except Interrupted:
        loop.save()
        raise


class _Loop:
    def __init__(self, setup: Setup, hooks: Hooks) -> None:
        self._setup = setup
        self._hooks = hooks
        self._recipe = setup.recipe
        self._settings = section(setup.recipe)
        self._telling = Telling(hooks, self._settings)
        self._saving = Saving(setup.folder, setup.team, setup.optimizers)
        self._state = State()
        self._saved: State | None = None
        self._is_whole = True  # the weights are those of `_state`
        self._candidate = self._state  # whose weights the training ends with

    # begin, evaluate, save

    def begin(self) -> None:
        """From the newest checkpoint; without one, from here."""
        restored = self._saving.restore_newest()
        if restored is not None:
            self._state = self._saved = restored
            log.info("going on after iteration %d of %d", restored.step, self._settings.iterations)
        self._telling.stands(self._state)

    def is_evaluation_due(self) -> bool:
        """Before the first iteration too: a team that only gets worse stays what it was."""
        step, settings = self._state.step, self._settings
        due = step % settings.eval_interval == 0 or step == settings.iterations
        wanted = bool(self._setup.tasks_validation) and self._state.collapsed_why is None
        return due and wanted and not self._state.is_evaluated

    def evaluate(self) -> None:
        """With the same draws each time, so that two evaluations differ by the weights alone."""
        began = time.monotonic()
        episodes = self._setup.rollouts.collect(
            self._setup.tasks_validation,
            group_size=1,
            samples=self._settings.eval_samples,
            greedy=self._settings.eval_samples == 1,
            seed=self._seed("evaluation"),
            on_done=lambda found: self._telling.validates(self._state, found),
        )
        figures = Evaluation(
            step=self._state.step,
            pass_rate=_pass_rate(episodes),
            reward=_mean_reward(episodes),
            episodes=len(episodes),
            seconds=time.monotonic() - began,
        )
        self._state = self._state.after_evaluation(figures)
        self._hooks.on_evaluation(figures)
        self._telling.stands(self._state)

    def is_checkpoint_due(self) -> bool:
        step = self._state.step
        return step % self._settings.save_interval == 0 or self._state.is_evaluated or self.is_over()

    def save(self) -> None:
        if not self._is_whole or self._state == self._saved:
            return
        self._saving.save(self._state)
        self._saved = self._state
        if self._state.step:
            failpoint("train.after_checkpoint")

    def is_over(self) -> bool:
        state = self._state
        waited = state.stopper.should_stop(self._recipe.early_stopping_patience)
        return state.step >= self._settings.iterations or waited or state.collapsed_why is not None

    # an iteration

    def iterate(self) -> None:
        began = time.monotonic()
        self._hooks.check()
        episodes = self._collect()
        collected = time.monotonic()
        self._hooks.check()
        measured = self._update(episodes)
        figures = Iteration(
            step=self._state.step + 1,
            total_steps=self._settings.iterations,
            episodes=len(episodes),
            reward=_mean_reward(episodes),
            solved=sum(episode.solved for episode in episodes) / len(episodes),
            tokens=sum(episode.tokens for episode in episodes),
            rollout_seconds=collected - began,
            update_seconds=time.monotonic() - collected,
            learning_rate=self._setup.optimizers.learning_rate,
            update=measured,
            tokens_of={
                role: sum(len(action.ids) for action in of_role(episodes, role)) for role in roles(episodes)
            },
        )
        self._state = self._state.after_iteration(figures, episodes)
        self._is_whole = True
        failpoint("train.after_step")
        self._look_for_collapse(figures)
        self._hooks.on_episodes(figures.step, episodes)
        self._hooks.on_iteration(figures)
        self._telling.stands(self._state, figures.tokens_per_s)

    def _collect(self) -> list[Episode]:
        """Every thread's turns of the team until the next update, as whole episodes."""
        settings = self._settings
        episodes = max(settings.n_rollout_threads, settings.rollout_turns // settings.turns)
        tasks = drawn(
            self._setup.tasks_train,
            max(1, episodes // settings.group_size),
            self._state.step,
            seed=self._recipe.seed,
            round_number=self._setup.round_number,
        )
        return self._setup.rollouts.collect(
            tasks,
            group_size=settings.group_size,
            seed=self._seed("rollout"),
            on_done=lambda found: self._telling.practises(self._state, found),
        )

    def _update(self, episodes: Sequence[Episode]) -> dict[str, float]:
        setup, step = self._setup, self._state.step
        randomness.seed(self._recipe.seed, setup.round_number, step)
        self._is_whole = False
        figures = update(
            setup.team,
            episodes,
            setup.optimizers,
            self._settings,
            self._recipe,
            torch.Generator().manual_seed(self._seed("update")),
            step / self._settings.iterations,
            lambda number, of: self._telling.learns(self._state, number, of, len(episodes)),
        )
        return figures.as_json()

    def _look_for_collapse(self, figures: Iteration) -> None:
        kl = figures.update.get("kl_reference", 0.0)
        found = stopping.collapse(self._state.watch, kl, self._settings.max_reference_kl)
        if found is None and not math.isfinite(figures.update.get("policy_loss", 0.0)):
            found = f"the policy's loss is {figures.update['policy_loss']}"
        if found is not None:
            advice = stopping.advice(self._recipe.learning_rate, self._settings.kl_coef)
            why = f"collapsed at iteration {figures.step}: {found}; {advice}"
            log.warning("%s", why)
            self._state = replace(self._state, collapsed_why=why)

    # the end

    def load_best(self) -> None:
        """What is told of the tasks is what those weights have seen, too."""
        self._candidate, best = self._state, self._state.stopper.best_step
        if self._state.curve and best != self._state.step:
            self._candidate = self._saving.restore_weights(best) or self._state

    def summary(self) -> Training:
        state, total = self._state, self._settings.iterations
        return Training(
            steps=state.step,
            total_steps=total,
            best_step=state.stopper.best_step if state.curve else state.step,
            weights_step=self._candidate.step,
            stopped_why=self._why_stopped(),
            collapsed=state.collapsed_why is not None,
            rewards=state.rewards,
            curve=state.curve,
            exposures=self._candidate.exposures,
            episodes=state.episodes,
            tokens=state.tokens,
            seconds=state.seconds,
            policy_loss=state.policy_loss,
            kl_reference=state.kl_reference,
        )

    def _why_stopped(self) -> str | None:
        state = self._state
        if state.collapsed_why is not None:
            return state.collapsed_why
        if state.step >= self._settings.iterations:
            return None
        best = max(one.pass_rate for one in state.curve)
        return f"no better than {best:.3f} of the validation's samples in {state.stopper.waited} evaluations"

    def _seed(self, purpose: str) -> int:
        step = 0 if purpose == "evaluation" else self._state.step
        return draw(purpose, self._recipe.seed, self._setup.round_number, step).randrange(SEEDS)


def _mean_reward(episodes: Sequence[Episode]) -> float:
    return sum(episode.reward for episode in episodes) / len(episodes)


def _pass_rate(episodes: Sequence[Episode]) -> float:
    """Mean over tasks; each has as many samples."""
    return sum(episode.solved for episode in episodes) / len(episodes)
