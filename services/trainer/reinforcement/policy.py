"""The one forward pass of a team: what the acting adapter, or the base at rest, thinks of written tokens."""

from typing import NamedTuple

import torch

from services.trainer.engine.batch import Batch
from services.trainer.reinforcement.logprobs import token_logprobs
from services.trainer.reinforcement.team import Team


class Seen(NamedTuple):
    """Of the n written tokens of a batch."""

    logprobs: torch.Tensor  # (n,) float32, nats
    entropy: torch.Tensor  # (n,) float32, nats


def states(team: Team, batch: Batch) -> torch.Tensor:
    """The last layer's hidden states (T, H), normalised; no document sees another."""
    hidden: torch.Tensor = team.causal_lm.base_model(
        input_ids=batch.input_ids[None],
        position_ids=batch.position_ids[None],
        use_cache=False,
        boundaries=batch.boundaries,
        longest=batch.longest,
        even=batch.even,
    ).last_hidden_state
    return hidden[0]


def seen(
    team: Team, hidden: torch.Tensor, batch: Batch, temperature: float, *, learn_entropy: bool = False
) -> Seen:
    """What `states` (T, H) say of the tokens that were written: prompts never go through the output layer."""
    head = team.causal_lm.get_output_embeddings().weight
    at = batch.learned_at
    return Seen(
        *token_logprobs(hidden[at], head, batch.targets[at], temperature, learn_entropy=learn_entropy)
    )
