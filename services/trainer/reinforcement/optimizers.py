"""AdamW over the adapters of a team, a group a role, and another over its value head.

In float32 on every device: adapters are small, and a resumed training goes on bit for bit.
"""

from collections.abc import Mapping
from typing import Any

import torch

from services.trainer.engine import optimizer as engine
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import section
from services.trainer.reinforcement.team import Team

CRITIC = "critic"


class Optimizers:
    """Of what is trained: not of frozen roles, and of a critic only where there is one."""

    def __init__(self, team: Team, recipe: Recipe) -> None:
        settings = section(recipe)
        self.roles = {
            role: team.parameters_of(role) for role in team.roles if role not in settings.frozen_roles
        }
        self._critic_parameters = {} if team.critic is None else dict(team.critic.named_parameters())
        self._rates = {"adapters": recipe.learning_rate, CRITIC: settings.critic_lr}
        self._decays = settings.use_linear_lr_decay
        groups: list[dict[str, Any]] = []
        for role, parameters in self.roles.items():
            matrices = [one for one in parameters.values() if one.ndim > 1]
            vectors = [one for one in parameters.values() if one.ndim <= 1]  # of DoRA
            groups.append({"params": matrices, "weight_decay": recipe.weight_decay, "role": role})
            if vectors:
                groups.append({"params": vectors, "weight_decay": 0.0, "role": role})
        options: dict[str, Any] = {"betas": recipe.adam_betas, "eps": engine.EPSILON, "fused": True}
        self.adapters = torch.optim.AdamW(groups, lr=recipe.learning_rate, **options)
        self.critic: torch.optim.Optimizer | None = None
        if self._critic_parameters:
            self.critic = torch.optim.AdamW(
                self._critic_parameters.values(), lr=settings.critic_lr, weight_decay=0.0, **options
            )

    def set_progress(self, progress: float) -> None:
        """Learning rates when this share of the training is done, in [0, 1): falling to 0, or constant."""
        share = 1.0 - progress if self._decays else 1.0
        engine.set_learning_rate(self.adapters, self._rates["adapters"] * share)
        if self.critic is not None:
            engine.set_learning_rate(self.critic, self._rates[CRITIC] * share)

    @property
    def learning_rate(self) -> float:
        """Of the adapters, at present."""
        return float(self.adapters.param_groups[0]["lr"])

    @property
    def rates(self) -> dict[str, float]:
        """At present, by `adapters` and, with a value head, `critic`."""
        rates = {"adapters": self.learning_rate}
        return rates if self.critic is None else {**rates, CRITIC: float(self.critic.param_groups[0]["lr"])}

    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
        """Moments and counters by `name::kind`: what is a tensor, and what is a number."""
        tensors, numbers = engine.state_of(self.adapters, self._adapter_parameters)
        if self.critic is not None:
            more_tensors, more_numbers = engine.state_of(self.critic, self._named_critic)
            tensors, numbers = {**tensors, **more_tensors}, {**numbers, **more_numbers}
        return tensors, numbers

    def restore(self, tensors: Mapping[str, torch.Tensor], numbers: Mapping[str, float]) -> None:
        """Back to what `state` gave, here or in another process; the rates follow at the next update.

        Raises KeyError for a name that is not in this team.
        """
        own = {name for name in (*tensors, *numbers) if name.startswith(f"{CRITIC}.")}
        engine.restore(self.adapters, self._adapter_parameters, *_without(own, tensors, numbers))
        if self.critic is not None:
            rest = {*tensors, *numbers} - own
            engine.restore(self.critic, self._named_critic, *_without(rest, tensors, numbers))

    @property
    def _adapter_parameters(self) -> dict[str, torch.nn.Parameter]:
        return {name: one for parameters in self.roles.values() for name, one in parameters.items()}

    @property
    def _named_critic(self) -> dict[str, torch.nn.Parameter]:
        return {f"{CRITIC}.{name}": one for name, one in self._critic_parameters.items()}


def _without(
    names: set[str], tensors: Mapping[str, torch.Tensor], numbers: Mapping[str, float]
) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
    return (
        {name: one for name, one in tensors.items() if name not in names},
        {name: one for name, one in numbers.items() if name not in names},
    )
