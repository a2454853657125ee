"""What there is to learn from a rollout: which actions, and how much better each was than expected."""

from dataclasses import dataclass

import torch

from services.trainer.recipes.reinforcement import Reinforcement
from services.trainer.reinforcement import advantages as estimates
from services.trainer.reinforcement.experience import Experience


@dataclass(frozen=True)
class Values:
    """What a critic expected, on the CPU, float32."""

    of_actions: torch.Tensor  # (A,)
    of_tokens: torch.Tensor | None  # tppo: (N,), known where a token may be learned


@dataclass(frozen=True)
class Weighed:
    """On the CPU, float32."""

    learned: tuple[int, ...]  # the actions that policies learn from
    advantages: torch.Tensor  # appo: (A,); tppo and grpo: (N,)
    returns: torch.Tensor  # (A,): what a critic should have expected
    explained: float | None = None  # share of the rewards' variance that it did expect
    skipped_groups: int = 0


def eligible(experience: Experience, roles: set[str], settings: Reinforcement) -> tuple[int, ...]:
    """Actions of trained roles that may be learned from: whole ones, unless cut-off ones count as well."""
    return tuple(
        at
        for at, action in enumerate(experience.actions)
        if action.role in roles and action.ids and (action.finished or not settings.mask_truncated)
    )


def by_values(
    experience: Experience, chosen: tuple[int, ...], values: Values, settings: Reinforcement
) -> Weighed:
    """APPO and TPPO: estimates over agents and turns, for TPPO carried on to tokens."""
    rewards, expected = experience.table(experience.rewards), experience.table(values.of_actions)
    estimated = experience.row(estimates.gae(rewards, expected, settings.gamma, settings.gae_lambda))
    returns = estimated + values.of_actions
    came = experience.row(estimates.returns_to_go(rewards, settings.gamma))
    if values.of_tokens is None:
        mask = torch.zeros(len(returns), dtype=torch.bool)
        mask[list(chosen)] = True
    else:
        estimated = estimates.token_advantages(returns, values.of_tokens, experience.owners)
        mask = torch.zeros(experience.tokens, dtype=torch.bool)
        mask[experience.token_indices(chosen)] = True
    return Weighed(
        learned=chosen,
        advantages=estimates.normalised(estimated, mask),
        returns=returns,
        explained=estimates.explained_variance(values.of_actions, came),
    )


def by_groups(
    experience: Experience, chosen: tuple[int, ...], roles: set[str], settings: Reinforcement
) -> Weighed:
    """GRPO: against others of task, role and turn, cut-off ones too; groups without variance are left out."""
    returns = experience.row(estimates.returns_to_go(experience.table(experience.rewards), settings.gamma))
    members = [at for at, action in enumerate(experience.actions) if action.role in roles]
    found = estimates.group_advantages(returns[members], experience.groups(members))
    advantages = torch.zeros_like(returns)
    advantages[members] = found.advantages
    kept = {at for at, keep in zip(members, found.kept.tolist(), strict=True) if keep}
    return Weighed(
        learned=tuple(at for at in chosen if at in kept),
        advantages=advantages[experience.owners],
        returns=returns,
        skipped_groups=found.skipped,
    )
