"""Teams of random weights whose adapters are not zero, and episodes they might have had."""

import random
from collections.abc import Sequence
from typing import Any

import torch

from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement.episodes import Action, Episode
from services.trainer.reinforcement.optimizers import Optimizers
from services.trainer.reinforcement.profiles import Profile
from services.trainer.reinforcement.team import Team
from services.trainer.reinforcement.update import OnPart, UpdateFigures, update
from tests.unit.trainer.engine import tiny

PROFILES = (Profile("analyzer", "Analyse.", with_answer=False), Profile("coder", "Write.", with_answer=True))
torch.set_num_threads(1)  # beside others on as many cores as there are, two threads cost five times the time
ROLES = tuple(profile.role for profile in PROFILES)


def recipe(section: dict[str, Any] | None = None, **fields: Any) -> Recipe:
    """Steps that are not clipped, at a rate that moves weights."""
    given = {"profiles": PROFILES, "use_linear_lr_decay": False, **(section or {})}
    return Recipe.model_validate(
        {
            "name": "tiny",
            "base_model": "./tiny",
            "method": "lora",
            "objective": "reinforcement",
            "reinforcement": given,
            "lora_r": 4,
            "lora_alpha": 8,
            "learning_rate": 0.01,
            "max_grad_norm": 1e9,
            **fields,
        }
    )


def team(chosen: Recipe, base: Any = None, *, std: float = 0.05) -> Team:
    """With B of this deviation, so that roles differ from one another and from the base."""
    made = Team.fresh(tiny.base() if base is None else base, None, chosen, PROFILES)
    shake(made, std)
    return made


def shake(made: Team, std: float = 0.05, seed: int = 3) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for role in made.roles:
            for name, parameter in made.parameters_of(role).items():
                if "lora_B" in name:
                    parameter.copy_(std * torch.randn(parameter.shape, generator=generator))
        if made.critic is not None:
            made.critic.out.copy_(0.05 * torch.randn(made.critic.out.shape, generator=generator))


def episodes(count: int = 6, *, turns: int = 1, group: int = 2, seed: int = 0) -> list[Episode]:
    """Random tokens; in a group the rewards differ, and episodes of several turns may end before the last."""
    chosen = random.Random(seed)
    made = []
    for number in range(count):
        actions, rewards = [], []
        for turn in range(turns if number % 3 else 1):
            for role in ROLES:
                actions.append(action(chosen, role, turn))
                rewards.append(0.0)
            rewards[-1] = float(number % group) if group > 1 else chosen.random()
        made.append(
            Episode(f"task {number // group}", number // group, tuple(actions), tuple(rewards), False, "", ())
        )
    return made


def action(chosen: random.Random, role: str, turn: int = 0, **fields: Any) -> Action:
    ids = [
        tuple(chosen.randrange(1, tiny.VOCABULARY) for _ in range(chosen.randint(2, 12))) for _ in range(2)
    ]
    return Action(
        **{
            "role": role,
            "turn": turn,
            "prompt_ids": ids[0],
            "ids": ids[1],
            "text": "",
            "finished": True,
            **fields,
        }
    )


class Learning:
    """A team that learns, with the gradients and weights that each of its steps saw."""

    def __init__(self, chosen: Recipe, made: Team | None = None) -> None:
        self.recipe = chosen
        self.team = team(chosen) if made is None else made
        self.optimizers = Optimizers(self.team, chosen)
        self.gradients: list[dict[str, torch.Tensor]] = []
        self.seen: list[dict[str, torch.Tensor]] = []  # weights before the step
        self._step = self.optimizers.adapters.step
        self.optimizers.adapters.step = self._record

    def update(
        self,
        rollout: Sequence[Episode],
        seed: int = 0,
        progress: float = 0.0,
        on_part: OnPart = lambda *_: None,
    ) -> UpdateFigures:
        section, generator = self.recipe.reinforcement, torch.Generator().manual_seed(seed)
        return update(self.team, rollout, self.optimizers, section, self.recipe, generator, progress, on_part)

    def weights(self) -> dict[str, torch.Tensor]:
        every = [self.team.parameters_of(role) for role in self.team.roles]
        return {name: one.detach().clone() for each in every for name, one in each.items()}

    def _record(self) -> None:
        named = [self.team.parameters_of(role) for role in self.team.roles]
        self.seen.append(self.weights())
        self.gradients.append(
            {name: one.grad.clone() for each in named for name, one in each.items() if one.grad is not None}
        )
        self._step()
