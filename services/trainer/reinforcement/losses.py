"""What a policy is to become less likely of: clipped ratios of tokens or of whole actions. Pure functions.

All take log-probabilities of N tokens (N,) float32, and give sums, so that micro-batches add up to the loss
of a mini-batch, whatever their sizes.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch

LARGEST = 20.0  # nats, that a ratio is made of at most: e²⁰ is far outside every clip range
STEEPEST = 3.0  # nats, from which the estimate of a KL goes on as a straight line


class Clip(NamedTuple):
    """The range of ratios within which an action may be made more or less likely."""

    low: float  # below 1
    high: float  # above 1


@dataclass(frozen=True)
class Actions:
    """Whose tokens these are."""

    owners: torch.Tensor  # (N,) int64: each token's action, from 0
    lengths: torch.Tensor  # (A,) float32: tokens of each action
    by_mean: bool  # normalization_mode token: the mean of an action's tokens instead of their sum


class Surrogate(NamedTuple):
    """The clipped surrogate of PPO (Schulman et al. 2017), negated, summed over tokens or actions."""

    loss: torch.Tensor  # scalar, with a gradient
    ratios: torch.Tensor  # scalar: sum of the ratios
    clipped: torch.Tensor  # scalar: how many lie outside the range


def action_surrogate(
    new: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, clip: Clip, actions: Actions
) -> Surrogate:
    """APPO: one ratio for a whole action; advantages (A,)."""
    difference = torch.zeros_like(advantages).index_add(0, actions.owners, new - old)
    if actions.by_mean:
        difference = difference / actions.lengths
    return _clipped(difference, advantages, clip)


def token_surrogate(new: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, clip: Clip) -> Surrogate:
    """TPPO and GRPO: one ratio a token; advantages (N,)."""
    return _clipped(new - old, advantages, clip)


def kl(new: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """KL of the policy that wrote these tokens to another, a token (N,): the estimator k3, never negative.

    With d = log p_other − log p_new: eᵈ − 1 − d (Schulman, "Approximating KL Divergence", 2020). Its tail
    is heavy: one token in hundreds that the other would have written e⁶ times as often is the whole mean.
    From 3 nats on it is continued by its tangent.
    """
    difference = other - new
    bent = difference.clamp(max=STEEPEST)
    return bent.exp() - 1 - bent + (math.exp(STEEPEST) - 1) * (difference - bent)


def _clipped(difference: torch.Tensor, advantages: torch.Tensor, clip: Clip) -> Surrogate:
    ratio = difference.clamp(max=LARGEST).exp()
    inside = ratio.clamp(1 - clip.low, 1 + clip.high)
    loss = -torch.minimum(ratio * advantages, inside * advantages).sum()
    seen = ratio.detach()
    return Surrogate(loss, seen.sum(), (seen != inside.detach()).sum())
