"""Log-probabilities and entropies of written tokens, straight from hidden states.

The logits of a chunk of tokens at a time, in the forward pass and once more in the backward pass: logits of
a whole batch (N, V), the largest tensors of the authors' way, are never there.
"""

from typing import Any

import torch

from services.trainer.engine.loss import LOGITS_BYTES

COPIES = 3  # float32 tensors of the logits' size that a chunk needs at once


def token_logprobs(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    temperature: float = 1.0,
    *,
    learn_entropy: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each token its log-probability (N,) and the entropy (N,) of what might have stood there, in nats.

    hidden (N, H): the states that predict the tokens; weight (V, H): the output layer's, which gets no
    gradient; targets (N,) int64. Both results are float32, of the policy at this temperature, at which it
    wrote. The entropy has a gradient only with `learn_entropy`.
    """
    return _TokenLogProbs.apply(hidden, weight, targets, temperature, learn_entropy)


class _TokenLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        targets: torch.Tensor,
        temperature: float,
        learn_entropy: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        count = len(targets)
        normaliser, chosen, entropy = (
            torch.empty(count, dtype=torch.float32, device=hidden.device) for _ in range(3)
        )
        for part in _chunks(count, weight):
            logs = _logits(hidden[part], weight, temperature)  # (C, V) float32
            normaliser[part] = logs.logsumexp(-1)
            logs.sub_(normaliser[part, None])
            chosen[part] = logs.gather(1, targets[part, None]).squeeze(1)
            entropy[part] = logs.mul_(logs.exp()).sum(-1).neg_()
        ctx.save_for_backward(hidden, weight, targets, normaliser, entropy)
        ctx.temperature, ctx.learn_entropy = temperature, learn_entropy
        if not learn_entropy:
            ctx.mark_non_differentiable(entropy)
        return chosen, entropy

    @staticmethod
    def backward(ctx: Any, d_logprobs: torch.Tensor, d_entropy: torch.Tensor) -> tuple[Any, ...]:
        """∂ log p_y / ∂ z = 1[y] − p and ∂ H / ∂ z = −p (log p + H), for logits z."""
        hidden, weight, targets, normaliser, entropy = ctx.saved_tensors
        d_hidden = torch.empty_like(hidden)
        for part in _chunks(len(targets), weight):
            logs = _logits(hidden[part], weight, ctx.temperature).sub_(normaliser[part, None])
            slope = logs.exp()
            if ctx.learn_entropy:
                logs.add_(entropy[part, None]).mul_(d_entropy[part, None]).add_(d_logprobs[part, None])
                slope.mul_(logs).neg_()
            else:
                slope.mul_(-d_logprobs[part, None])
            slope.scatter_add_(1, targets[part, None], d_logprobs[part, None])
            d_hidden[part] = slope.div_(ctx.temperature).to(weight.dtype) @ weight
        return d_hidden, None, None, None, None


def _logits(hidden: torch.Tensor, weight: torch.Tensor, temperature: float) -> torch.Tensor:
    """(C, V) float32, a tensor of its own."""
    logits = (hidden @ weight.T).float()
    return logits if temperature == 1.0 else logits.div_(temperature)


def _chunks(count: int, weight: torch.Tensor) -> list[slice]:
    rows = max(1, LOGITS_BYTES // (4 * COPIES * weight.shape[0]))
    return [slice(start, start + rows) for start in range(0, count, rows)]
