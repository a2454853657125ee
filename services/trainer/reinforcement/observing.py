"""What is known of a rollout before anything is learned: the base's view of it, and what it was worth.

One forward pass of the base, all adapters off, over every row: log-probabilities for the KL, and hidden
states for the critic. It serves every step of the update.
"""

from dataclasses import dataclass

import torch

from services.trainer.recipes.reinforcement import Reinforcement
from services.trainer.reinforcement import policy
from services.trainer.reinforcement.experience import Experience
from services.trainer.reinforcement.room import Room
from services.trainer.reinforcement.team import Team


@dataclass(frozen=True)
class Observed:
    """What the base had to say of a rollout, on its device."""

    reference: torch.Tensor  # (N,) float32: log-probabilities of the tokens that may be learned from
    features: torch.Tensor  # (A, H): states at the ends of prompts; without a critic (0, H)
    token_features: torch.Tensor | None  # tppo: (N, H), states that predict the tokens


@torch.no_grad()
def observe(
    team: Team, experience: Experience, whole: tuple[int, ...], settings: Reinforcement, room: Room
) -> Observed:
    """whole: the actions whose tokens count. Of the others only a critic wants something: their prompts."""
    rest: tuple[int, ...] = ()
    if team.critic is not None:
        rest = tuple(sorted(set(range(len(experience.actions))) - set(whole)))

    def work() -> Observed:
        head = team.causal_lm.get_output_embeddings().weight  # (V, H)
        reference = torch.zeros(experience.tokens, device=team.device)
        actions = len(experience.actions) if team.critic is not None else 0
        features = torch.zeros(actions, head.shape[1], dtype=head.dtype, device=team.device)
        wants_tokens = settings.algorithm == "tppo"
        token_features = features.new_zeros(experience.tokens, head.shape[1]) if wants_tokens else None
        most = room.tokens(gradients=False)
        for part in experience.parts(whole, most, team.device, prompts_only=rest):
            hidden = policy.states(team, part.batch)
            reference[part.tokens] = policy.seen(team, hidden, part.batch, settings.temperature).logprobs
            if actions:
                features[part.actions] = hidden[part.prompt_ends]
            if token_features is not None:
                token_features[part.tokens] = hidden[part.batch.learned_at]
        return Observed(reference, features, token_features)

    with team.at_rest():
        return room.within(work)


@torch.no_grad()
def logprobs(
    team: Team, role: str, experience: Experience, chosen: tuple[int, ...], temperature: float, room: Room
) -> torch.Tensor:
    """Of a role's tokens (N,), by its adapter as it is now; 0 where they are not of the chosen actions."""

    def work() -> torch.Tensor:
        found = torch.zeros(experience.tokens, device=team.device)
        for part in experience.parts(chosen, room.tokens(gradients=False), team.device):
            hidden = policy.states(team, part.batch)
            found[part.tokens] = policy.seen(team, hidden, part.batch, temperature).logprobs
        return found

    with team.acting(role):
        return room.within(work)
