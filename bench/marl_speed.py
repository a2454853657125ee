"""How fast an iteration is beside the authors' way, on a model of true shape with random weights.

The arms take turns iteration by iteration in one process, with the same tasks, lengths, adapters, epochs and
mini-batches; medians count, the first iteration of each does not. The arm that takes minutes an iteration
(`authors_per_thread`) is asked once, and that one counts. A random model never ends a text, so every
answer has `new_tokens` tokens in every arm, and every program is a right one of its own, which the sandbox
runs. `ratio` is iterations of ours to one of the authors', who write for all threads at once;
`ratio_per_thread` is to a call for every agent and thread.
"""

import argparse
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import torch

from bench.marl_peer import Authors, distinct
from bench.random_model import make_model
from services.core.sandbox import Sandbox
from services.trainer import model
from services.trainer.recipes.recipe import Method, Recipe
from services.trainer.recipes.reinforcement import Reinforcement, section
from services.trainer.reinforcement.optimizers import Optimizers
from services.trainer.reinforcement.profiles import Profile
from services.trainer.reinforcement.rewards import Rewards
from services.trainer.reinforcement.rollout import Rollouts
from services.trainer.reinforcement.team import Team
from services.trainer.reinforcement.update import update
from services.trainer.suites.formats import Task
from tests import toy_team

WAIT = 0.2  # seconds between two looks at the GPU
WARM = 1  # iterations of each arm that do not count
ONCE = "authors_per_thread"


@dataclass(frozen=True)
class Sizes:
    """Of the work; the defaults are the seed's, 004."""

    shape: str = "1.5b"
    method: Method = "qlora"
    threads: int = 8
    prompt_tokens: int = 512  # an analyzer's; a coder's has what was written besides
    new_tokens: int = 512
    epochs: int = 5
    mini_batches: int = 4
    iterations: int = 3  # timed, of each arm
    arms: str = "ratchet,authors,authors_per_thread"

    def recipe(self, base: Path) -> Recipe:
        return Recipe(
            name="speed",
            base_model=str(base),
            method=self.method,
            objective="reinforcement",
            lora_r=8,
            lora_alpha=16,
            target_modules=("q_proj", "v_proj"),
            learning_rate=5e-7,
            general_suite=None,
            reinforcement=Reinforcement(
                n_rollout_threads=self.threads,
                max_new_tokens=self.new_tokens,
                context_window=self.prompt_tokens + self.new_tokens,
                ppo_epoch=self.epochs,
                num_mini_batch=self.mini_batches,
                mask_truncated=False,  # every answer is
            ),
        )


@dataclass(frozen=True)
class Timed:
    rollout: float  # seconds
    update: float
    tokens: int  # written

    @property
    def seconds(self) -> float:
        return self.rollout + self.update


class FixedLengths:
    """Prompts of so many tokens for whatever is asked: the same for the same task and agent."""

    stops: tuple[str, ...] = ()

    def __init__(self, sizes: Sizes, vocabulary: int) -> None:
        self._sizes, self._vocabulary = sizes, vocabulary

    def __call__(
        self, profile: Profile, task: Task, texts: Sequence[str], _program: str | None, _result: str | None
    ) -> list[int]:
        chance = random.Random(f"{task.name} {profile.role}")
        tokens = self._sizes.prompt_tokens + self._sizes.new_tokens * len(texts)
        return [chance.randrange(self._vocabulary) for _ in range(tokens)]


def add_options(parser: argparse.ArgumentParser) -> None:
    """An option a size."""
    for each in fields(Sizes):
        parser.add_argument(f"--{each.name.replace('_', '-')}", type=type(each.default), default=each.default)


def sizes(asked: argparse.Namespace) -> Sizes:
    """As the options say."""
    return Sizes(**{each.name: getattr(asked, each.name) for each in fields(Sizes)})


def measure(sizes: Sizes, folder: Path, *, allow_unsandboxed: bool = False) -> dict[str, Any]:
    """Seconds, rates, shares and ratios of the arms, flat; `folder` holds the model while it takes place."""
    base = make_model(sizes.shape, folder)
    try:
        with Sandbox.open(None, allow_unsandboxed=allow_unsandboxed) as sandbox, Rewards(sandbox) as rewards:
            arms = _arms(sizes, base, sandbox, rewards)
            found: dict[str, list[Timed]] = {name: [] for name in arms}
            busy: dict[str, list[float]] = {name: [] for name in arms}
            for number in range(WARM + sizes.iterations):
                for name, arm in arms.items():
                    if name == ONCE and number != WARM:
                        continue
                    with watched_gpu() as looks:
                        timed = arm(number)
                    print(f"{name}, {number}: {timed.rollout:.2f} + {timed.update:.2f} s", flush=True)
                    if number >= WARM:
                        found[name].append(timed)
                        busy[name] += looks
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _figures(sizes, found, busy)


def _arms(sizes: Sizes, base: Path, sandbox: Sandbox, rewards: Rewards) -> dict[str, Callable[[int], Timed]]:
    recipe = sizes.recipe(base)
    source = model.locate(recipe.base_model, None, base)
    tokenizer = model.load_tokenizer(source)
    prompting = FixedLengths(sizes, len(tokenizer))
    made: dict[str, Callable[[], Callable[[int], Timed]]] = {
        "ratchet": lambda: _ours(recipe, source, tokenizer, prompting, rewards),
        **{
            name: partial(_theirs, sizes, recipe, source, tokenizer, prompting, sandbox, each)
            for name, each in (("authors", False), (ONCE, True))
        },
    }
    return {name: made[name]() for name in sizes.arms.split(",")}


def _ours(
    recipe: Recipe, source: model.Source, tokenizer: Any, prompting: FixedLengths, rewards: Rewards
) -> Callable[[int], Timed]:
    settings = section(recipe)
    team = Team.fresh(model.load_base(recipe, source), tokenizer, recipe, settings.profiles)
    optimizers = Optimizers(team, recipe)
    rollouts = Rollouts(
        team, settings.profiles, settings, recipe, rewards, prompting=prompting, extract=distinct
    )

    def iterate(number: int) -> Timed:
        began = time.perf_counter()
        episodes = rollouts.collect(_tasks(settings.n_rollout_threads), seed=number)
        _wait_for_gpu()
        collected = time.perf_counter()
        generator = torch.Generator().manual_seed(number)
        update(team, episodes, optimizers, settings, recipe, generator, 0.0)
        _wait_for_gpu()
        tokens = sum(episode.tokens for episode in episodes)
        return Timed(collected - began, time.perf_counter() - collected, tokens)

    return iterate


def _theirs(
    sizes: Sizes, recipe: Recipe, source: model.Source, tokenizer: Any, prompting: FixedLengths,
    sandbox: Sandbox, per_thread: bool,
) -> Callable[[int], Timed]:  # fmt: skip
    base = model.load_base(recipe, source)
    peer = Authors(base, tokenizer, recipe, prompting, sandbox, per_thread=per_thread)

    def iterate(_number: int) -> Timed:
        began = time.perf_counter()
        batch = peer.rollout(_tasks(sizes.threads))
        _wait_for_gpu()
        collected = time.perf_counter()
        peer.update(batch)
        _wait_for_gpu()
        return Timed(collected - began, time.perf_counter() - collected, batch.tokens)

    return iterate


def _tasks(count: int) -> list[Task]:
    """No two alike, so that no prompt is shared."""
    known = toy_team.tasks()
    return [replace(known[number % len(known)], name=f"task {number}") for number in range(count)]


def _wait_for_gpu() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _figures(sizes: Sizes, found: dict[str, list[Timed]], busy: dict[str, list[float]]) -> dict[str, Any]:
    flat: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        **{name: getattr(sizes, name) for name in ("shape", "method", "threads", "new_tokens")},
    }
    seconds = {}
    for name, every in found.items():
        seconds[name] = statistics.median(one.seconds for one in every)
        flat[f"{name}_seconds_per_step"] = round(seconds[name], 3)
        flat[f"{name}_rollout_seconds"] = round(statistics.median(one.rollout for one in every), 3)
        flat[f"{name}_update_seconds"] = round(statistics.median(one.update for one in every), 3)
        rates = [one.tokens / one.rollout for one in every]
        flat[f"{name}_rollout_tokens_per_s"] = round(statistics.median(rates), 1)
        flat[f"{name}_gpu_busy"] = round(statistics.mean(busy[name]), 3) if busy[name] else None
    for name, ratio in (("authors", "ratio"), (ONCE, "ratio_per_thread")):
        if {"ratchet", name} <= seconds.keys():
            flat[ratio] = round(seconds[name] / seconds["ratchet"], 2)
    return flat


@contextmanager
def watched_gpu() -> Iterator[list[float]]:
    """Shares of time in which kernels ran on the first GPU, as its driver tells; none where there is none."""
    looks: list[float] = []
    if not torch.cuda.is_available() or shutil.which("nvidia-smi") is None:
        yield looks
        return
    done = Event()

    def look() -> None:
        query = ["nvidia-smi", "--id=0", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not done.wait(WAIT):
            said = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
            if said.isdigit():
                looks.append(int(said) / 100)

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield looks
    finally:
        done.set()
        thread.join()
