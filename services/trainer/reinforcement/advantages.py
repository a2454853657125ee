"""How much better an action was than expected: over agents and turns, over tokens, within groups.

Pure functions of tensors. Actions of an episode stand in a row (E, K), agent after agent and turn after
turn; an episode with fewer than K is filled up with zeros, which change nothing before them.
"""

from typing import NamedTuple

import torch

LEAST_SPREAD = 0.1  # of advantages that are scaled to 1; rewards lie between 0 and 1


def gae(rewards: torch.Tensor, values: torch.Tensor, gamma: float, lam: float) -> torch.Tensor:
    """Generalised advantage estimates (E, K) (Schulman et al. 2016) over the actions of each episode (E, K).

    An episode is one chain through all its agents: what follows the analyzer is the coder's state, not an
    end. (The authors' code cuts the chain there in episodes of one step, and only the last has credit.)
    """
    advantages = torch.zeros_like(values)
    following = torch.zeros_like(values[..., 0])  # advantage of the action after
    expected = torch.zeros_like(following)  # its value
    for at in reversed(range(values.shape[-1])):  # agents × turns: a handful
        surprise = rewards[..., at] + gamma * expected - values[..., at]
        following = surprise + gamma * lam * following
        advantages[..., at] = following
        expected = values[..., at]
    return advantages


def returns_to_go(rewards: torch.Tensor, gamma: float) -> torch.Tensor:
    """What was rewarded from each action on (E, K)."""
    return gae(rewards, torch.zeros_like(rewards), gamma, 1.0)


def token_advantages(returns: torch.Tensor, values: torch.Tensor, owners: torch.Tensor) -> torch.Tensor:
    """Of every token (N,): its action's return (A,), less the token's own value (N,); owners (N,) int64.

    It is GAE over tokens with γ = λ = 1 within an action and the recipe's between actions: the surprises of
    an action's tokens telescope to just this. A λ below 1 a token would have forgotten the reward a hundred
    tokens earlier (Yuan et al., "What's Behind PPO's Collapse in Long-CoT?", 2025).
    """
    return returns[owners] - values


class Groups(NamedTuple):
    """Actions compared within their groups."""

    advantages: torch.Tensor  # (A,)
    kept: torch.Tensor  # (A,) bool: there is something to learn from
    skipped: int  # groups of one, or without variance


def group_advantages(returns: torch.Tensor, groups: torch.Tensor) -> Groups:
    """Each action's return (A,) less the mean of its group; groups (A,) int64, numbered from 0 without gaps.

    Not divided by the group's deviation, which would favour tasks that nearly always or nearly never
    succeed (Liu et al., "Dr. GRPO", 2503.20783).
    """
    if not len(returns):
        return Groups(returns, torch.zeros(0, dtype=torch.bool), 0)
    count = int(groups.max()) + 1

    def reduced(how: str) -> torch.Tensor:
        return returns.new_zeros(count).scatter_reduce(0, groups, returns, how, include_self=False)

    varies = reduced("amax") - reduced("amin") > 0
    advantages = returns - reduced("mean")[groups]
    return Groups(advantages, varies[groups], int((~varies).sum()))


def normalised(advantages: torch.Tensor, learned: torch.Tensor) -> torch.Tensor:
    """Brought to mean 0 and deviation 1 over those that are learned from, as the mask says.

    A deviation below 0.1 counts as 0.1: where all episodes succeeded, or none, there is only the critic's
    noise, which is not to be blown up into a signal.
    """
    chosen = advantages[learned]
    if not len(chosen):
        return advantages
    spread = chosen.std(correction=0).clamp(min=LEAST_SPREAD)
    return (advantages - chosen.mean()) / spread


def explained_variance(values: torch.Tensor, returns: torch.Tensor) -> float | None:
    """Share of the returns' variance (N,) that the values (N,) foretold; None where they do not vary."""
    variance = returns.var(correction=0)
    if variance <= 0:
        return None
    return float(1 - (returns - values).var(correction=0) / variance)
