"""Rollouts of a real team of a tiny model, whose programs the real sandbox runs."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from services.core.errors import SandboxError
from services.core.sandbox import Sandbox
from services.trainer import model
from services.trainer.generation import graphs
from services.trainer.model.locate import Source, load_tokenizer
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import section
from services.trainer.reinforcement.backend import AtRest
from services.trainer.reinforcement.episodes import Action
from services.trainer.reinforcement.rewards import Rewards
from services.trainer.reinforcement.rollout import Rollouts
from services.trainer.reinforcement.team import Team
from services.trainer.suites.formats import Task
from tests.tiny_model import make

RIGHT, WRONG = "def double(x):\n    return 2 * x\n", "def double(x):\n    return x\n"
TEST = "assert double(1) == 2\nassert double(0) == 0"
ROUNDING = {"atol": 5e-5, "rtol": 1e-4}  # of float32 sums in another order


def task(name: str, solution: str) -> Task:
    """Of a program that the team writes whatever it says: a random model writes none."""
    return Task(name, "", f"Double x. ({name})", "", solution, TEST, "double", "assert")


TASKS = [task("right", RIGHT), task("wrong", WRONG), task("broken", "def double(x)"), task("silent", "")]


def solution(asked: Task, _text: str) -> str | None:
    return asked.solution or None


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox.open(None, workers=2) as opened:
        yield opened


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def recipe(base: Path) -> Recipe:
    return Recipe.model_validate(
        {
            "name": "tiny", "base_model": str(base), "method": "lora", "objective": "reinforcement",
            "general_suite": None, "reinforcement": {"max_new_tokens": 12, "context_window": 400, "turns": 2},
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def team(recipe: Recipe, base: Path) -> Team:
    """Whose agents say different things."""
    source = Source(str(base), None)
    made = Team.fresh(
        model.load_base(recipe, source, None), load_tokenizer(source), recipe, section(recipe).profiles
    )
    draws = torch.Generator().manual_seed(1)
    for role in made.roles:
        for parameter in made.parameters_of(role).values():
            with torch.no_grad():
                parameter.copy_(torch.randn(parameter.shape, generator=draws) * 0.1)
    return made


@pytest.fixture
def rollouts(team: Team, recipe: Recipe, sandbox: Sandbox) -> Iterator[Callable[..., Rollouts]]:
    settings = section(recipe)
    with Rewards(sandbox) as rewards:
        yield lambda **options: Rollouts(
            team, settings.profiles, settings, recipe, rewards, extract=solution, **options
        )


def test_programs_earn_what_the_sandbox_says_of_them(rollouts: Callable[..., Rollouts]) -> None:
    right, wrong, broken, silent = rollouts().collect(TASKS, seed=1)
    assert (right.solved, right.result, right.rewards, right.turns) == (True, "passed", (0.0, 1.0), 1)
    for other, said in ((wrong, "failed"), (broken, "expected ':'"), (silent, "no code")):
        assert said in other.result
        assert (other.solved, other.reward, other.turns) == (False, 0.0, 2)


def test_continuous_rewards_count_the_tests(team: Team, recipe: Recipe, sandbox: Sandbox) -> None:
    settings = section(recipe).model_copy(update={"turns": 1})
    with Rewards(sandbox, "continuous") as rewards:
        made = Rollouts(team, settings.profiles, settings, recipe, rewards, extract=solution)
        right, wrong, *_ = made.collect(TASKS[:2], seed=1)
    assert (right.rewards, wrong.rewards) == ((0.0, 1.0), (0.0, 0.5))


def test_agents_read_the_last_program_and_what_its_tests_said(
    team: Team, rollouts: Callable[..., Rollouts]
) -> None:
    (episode,) = rollouts().collect([TASKS[1]], seed=1)
    first, _, again, _ = (team.tokenizer.decode(action.prompt_ids) for action in episode.actions)
    assert "return x" not in first
    assert "return x" in again
    assert "an assertion does not hold (1 of 2 tests passed)" in again
    assert TEST not in again


def test_a_rollout_is_the_same_once_more_and_another_with_another_seed(
    rollouts: Callable[..., Rollouts],
) -> None:
    made = rollouts()
    first = made.collect(TASKS[:1], group_size=2, seed=1)
    assert made.collect(TASKS[:1], group_size=2, seed=1) == first
    assert made.collect(TASKS[:1], group_size=2, seed=2) != first
    assert first[0].actions[0].ids != first[1].actions[0].ids


@pytest.mark.parametrize("devices", [(), ("cpu",)], ids=["transformers", "graphs"])
def test_recorded_log_probabilities_are_those_of_the_role_that_acted(
    team: Team, rollouts: Callable[..., Rollouts], devices: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "DEVICES", devices)
    episodes = rollouts().collect(TASKS[1:3], group_size=2, seed=3)
    for role in team.roles:
        mine = [action for each in episodes for action in each.actions if action.role == role]
        with team.acting(role):
            for action in mine:
                torch.testing.assert_close(
                    torch.tensor(action.logprobs), forced(team.model, action), **ROUNDING
                )


def test_the_base_at_rest_is_the_model_without_adapters(
    team: Team, rollouts: Callable[..., Rollouts]
) -> None:
    (episode,) = rollouts(backend=AtRest(team)).collect(TASKS[:1], seed=3)
    (action, *_) = episode.actions
    with team.at_rest():
        torch.testing.assert_close(torch.tensor(action.logprobs), forced(team.model, action), **ROUNDING)


def test_greedy_is_the_likeliest_token_each_time(team: Team, rollouts: Callable[..., Rollouts]) -> None:
    first, second = rollouts().collect(TASKS[:1], seed=3, greedy=True, samples=2)
    assert first == second
    action = first.actions[0]
    with team.acting(action.role), torch.no_grad():
        logits = team.model(torch.tensor([[*action.prompt_ids, *action.ids]]), use_cache=False).logits[0]
    likeliest = logits[len(action.prompt_ids) - 1 : -1].argmax(-1).tolist()
    assert tuple(likeliest) == action.ids


def test_a_sandbox_stays_open_when_the_lines_beside_it_are_closed(sandbox: Sandbox) -> None:
    with Rewards(sandbox) as rewards:
        pending = [rewards.submit(TASKS[0], RIGHT + f"# {number}") for number in range(12)]
        assert all(each.result().passed for each in pending)
    with Rewards(sandbox) as rewards:
        assert rewards.submit(TASKS[0], RIGHT).result().passed


def test_a_sandbox_that_has_gone_is_an_error_that_says_what_to_do() -> None:
    with Sandbox.open(None, workers=1) as opened:
        rewards = Rewards(opened)
    try:
        with pytest.raises(SandboxError, match=r"no sandbox answers.*start it"):
            rewards.submit(TASKS[0], RIGHT).result()
    finally:
        rewards.close()


def forced(causal_lm: Any, action: Action) -> torch.Tensor:
    """Log-probabilities of an action's ids, read at once."""
    ids: Sequence[int] = [*action.prompt_ids, *action.ids]
    with torch.no_grad():
        logits = causal_lm(torch.tensor([ids]), use_cache=False).logits[0].float()
    before = logits[len(action.prompt_ids) - 1 : -1]
    return before.log_softmax(-1).gather(1, torch.tensor(action.ids)[:, None]).squeeze(1)
