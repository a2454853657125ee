"""Cross entropy straight from hidden states: the logits of a chunk at a time, never of a whole batch.

The gradient of a chunk is made while its logits are there, as in Liger's and Apple's fused losses
(Wijmans et al., "Cut Your Losses in Large-Vocabulary Language Models", 2024).
"""

from typing import Any

import torch

LOGITS_BYTES = 512 * 2**20  # float32 logits held at once at most


def summed_cross_entropy(hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Nats of all targets together, a float32 scalar.

    hidden (N, H), weight (V, H): the output layer's, targets (N,) int64.
    """
    return _SummedCrossEntropy.apply(hidden, weight, targets)


class _SummedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        needs_hidden, needs_weight, _ = ctx.needs_input_grad
        d_hidden = torch.empty_like(hidden) if needs_hidden else None
        d_weight = torch.zeros_like(weight, dtype=torch.float32) if needs_weight else None
        chunk = max(1, LOGITS_BYTES // (4 * weight.shape[0]))
        for start in range(0, hidden.shape[0], chunk):
            states, wanted = hidden[start : start + chunk], targets[start : start + chunk]
            nats, slope = _nats(states @ weight.T, wanted, with_slope=needs_hidden or needs_weight)
            total += nats.sum()
            if d_hidden is not None:
                d_hidden[start : start + chunk] = slope @ weight
            if d_weight is not None:
                d_weight += (slope.T @ states).float()
        ctx.save_for_backward(d_hidden, d_weight)
        ctx.weight_dtype = weight.dtype
        return total

    @staticmethod
    def backward(ctx: Any, scale: torch.Tensor) -> tuple[Any, ...]:
        d_hidden, d_weight = ctx.saved_tensors
        return (
            None if d_hidden is None else d_hidden * scale.to(d_hidden.dtype),
            None if d_weight is None else (d_weight * scale).to(ctx.weight_dtype),
            None,
        )


def _nats(
    logits: torch.Tensor, targets: torch.Tensor, *, with_slope: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of logits (C, V) each target's nats (C,) float32, and if wanted the gradient of their sum (C, V)."""
    if logits.is_cuda:
        from services.trainer.engine import kernels

        return kernels.cross_entropy(logits, targets, with_slope=with_slope), logits
    wide = logits.float()
    normaliser = wide.logsumexp(-1, keepdim=True)
    nats = (normaliser - wide.gather(1, targets[:, None])).squeeze(1)
    if not with_slope:
        return nats, logits
    slope = wide.sub_(normaliser).exp_()  # the softmax, less one at the target
    slope.scatter_add_(1, targets[:, None], slope.new_full((len(targets), 1), -1.0))
    return nats, slope.to(logits.dtype)
