"""The algorithms as their papers write them: one action after another, one token after another, whole logits.

With plain PEFT and plain attention, nothing of ours. What is fast is held against this.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from peft import get_peft_model
from torch.nn.functional import log_softmax

from services.trainer.model import adapters
from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement.episodes import Action, Episode
from tests.unit.trainer.engine import tiny
from tests.unit.trainer.reinforcement.teams import ROLES


class Model:
    """PEFT's own, with the weights that are given by name."""

    def __init__(self, chosen: Recipe, weights: Mapping[str, torch.Tensor], base: Any = None) -> None:
        base = tiny.base() if base is None else base
        base.set_attn_implementation("eager")
        config = adapters.config_of(base, chosen)
        self.model = get_peft_model(base, copy.deepcopy(config), adapter_name=ROLES[0])
        for role in ROLES[1:]:
            self.model.add_adapter(role, copy.deepcopy(config))
        self.model.load_state_dict(weights, strict=False)
        self.model.eval()
        self.temperature = chosen.reinforcement.temperature

    def logs(self, action: Action, *, base: bool = False) -> torch.Tensor:
        """Log-probabilities of the whole vocabulary at each written token (n, V)."""
        ids = torch.tensor([action.prompt_ids + action.ids])
        if base:
            with self.model.disable_adapter():
                logits = self.model(ids, use_cache=False).logits
        else:
            self.model.set_adapter(action.role)
            logits = self.model(ids, use_cache=False).logits
        first = len(action.prompt_ids)
        return log_softmax(logits[0, first - 1 : -1].float() / self.temperature, dim=-1)

    def logprobs(self, action: Action, *, base: bool = False) -> torch.Tensor:
        """Of the written tokens (n,)."""
        return chosen(self.logs(action, base=base), action)

    def state(self, action: Action) -> torch.Tensor:
        """The base's last hidden state at the prompt's end (H,)."""
        with self.model.disable_adapter(), torch.no_grad():
            return (
                self.model.get_base_model().model(torch.tensor([action.prompt_ids])).last_hidden_state[0, -1]
            )

    def token_states(self, action: Action) -> torch.Tensor:
        """Before each written token (n, H)."""
        ids = torch.tensor([action.prompt_ids + action.ids])
        with self.model.disable_adapter(), torch.no_grad():
            return (
                self.model.get_base_model().model(ids).last_hidden_state[0, len(action.prompt_ids) - 1 : -1]
            )


def chosen(logs: torch.Tensor, action: Action) -> torch.Tensor:
    """Of the whole vocabulary (n, V) the written tokens' (n,)."""
    return torch.stack([logs[at, token] for at, token in enumerate(action.ids)])


def loss(
    recipe: Recipe, role: str, episodes: Sequence[Episode], now: Model, then: Model, gained: Mapping[Any, Any]
) -> torch.Tensor:
    """A role's loss over these episodes.

    gained: by action, the advantage (appo) or a list with one a token.
    """
    settings = recipe.reinforcement
    clipped, extra, units, tokens = torch.zeros(()), torch.zeros(()), 0, 0
    for episode in episodes:
        for action in episode.actions:
            if action.role != role or action not in gained:
                continue
            logs = now.logs(action)
            new, entropies = chosen(logs, action), -(logs.exp() * logs).sum(-1)
            with torch.no_grad():
                old, base = then.logprobs(action), now.logprobs(action, base=True)
            if settings.algorithm == "appo":
                difference = (new - old).sum()
                if settings.normalization_mode == "token":
                    difference = difference / len(action.ids)
                clipped = clipped + _clip(difference.exp(), gained[action], settings)
                units += 1
            else:
                for at in range(len(action.ids)):
                    clipped = clipped + _clip((new[at] - old[at]).exp(), gained[action][at], settings)
                units += len(action.ids)
            for at in range(len(action.ids)):
                extra = extra + settings.kl_coef * _k3(base[at] - new[at])
                extra = extra - settings.entropy_coef * entropies[at]
            tokens += len(action.ids)
    return clipped / units + extra / tokens


def _clip(ratio: torch.Tensor, advantage: float, settings: Any) -> torch.Tensor:
    inside = torch.clamp(ratio, 1 - settings.clip_param, 1 + settings.clip_high)
    return -torch.minimum(ratio * advantage, inside * advantage)


def _k3(apart: torch.Tensor) -> torch.Tensor:
    if apart > 3:
        return math.exp(3) - 4 + (math.exp(3) - 1) * (apart - 3)
    return apart.exp() - 1 - apart


def gae(rewards: Sequence[float], values: Sequence[float], gamma: float, lam: float) -> list[float]:
    """By the definition: every discounted surprise that follows."""
    following = [*values[1:], 0.0]
    surprises = [r + gamma * n - v for r, v, n in zip(rewards, values, following, strict=True)]
    return [
        sum((gamma * lam) ** (later - at) * surprises[later] for later in range(at, len(values)))
        for at in range(len(values))
    ]
