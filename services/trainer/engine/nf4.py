"""The weight a projection multiplies with: its base, NF4 or dense, plus its adapter, made in one pass.

W + s·B·A costs 2·rank operations a weight; multiplying by it, instead of by base and adapter one after the
other, saves both adapter products of the forward pass, one of the backward pass's pairs, and every pass
over activations that added them. The layout decoded is bitsandbytes': two values a byte, the first in the
high half; a scale for 64 values, itself eight bits, with a scale for 256 of those (Dettmers et al.,
"QLoRA", 2023, section 3).
"""

from typing import Any

import torch

BLOCK = 64  # values of a scale
NF4_PARTS = 6  # tensors that describe an NF4 weight


def parts(base: Any) -> list[torch.Tensor]:
    """What a linear layer's weight is made of: itself, or packed values, scales and their codes."""
    weight = base.weight
    state = getattr(weight, "quant_state", None)
    if state is None:
        return [weight.detach()]
    if weight.is_cuda and state.nested and state.blocksize == BLOCK and state.shape[1] % BLOCK == 0:
        nested = state.state2
        pairs = torch.cartesian_prod(state.code, state.code).view(torch.int64).flatten()  # of each byte
        return [weight.data, state.absmax, nested.code, nested.absmax, state.offset, pairs]
    return [dense(base)]


def dense(base: Any) -> torch.Tensor:
    """A linear layer's weight (out, in), decoded where it is NF4."""
    state = getattr(base.weight, "quant_state", None)
    if state is None:
        return base.weight.detach()
    from bitsandbytes.functional import dequantize_4bit

    return dequantize_4bit(base.weight.data, state)


@torch.library.custom_op("ratchet::merged", mutates_args=())
def merged(
    base: list[torch.Tensor],
    shape: list[int],
    a: torch.Tensor,
    scaled_b: torch.Tensor,
    again: bool,  # tells the backward pass's call from the forward pass's, which else would be kept for it
) -> torch.Tensor:
    """The weight (out, in) of `parts(layer)` plus scaled_b (out, r) @ a (r, in), in the type of `a`."""
    weight = torch.empty(shape, dtype=a.dtype, device=a.device)
    merge_into(weight, base, a, scaled_b)
    return weight


def merge_into(
    weight: torch.Tensor, base: list[torch.Tensor], a: torch.Tensor, scaled_b: torch.Tensor
) -> None:
    """As `merged`, written over `weight`."""
    if len(base) < NF4_PARTS:
        torch.addmm(base[0].to(a.dtype), scaled_b, a, out=weight)
        return
    from services.trainer.engine import kernels

    packed, scales, scale_code, nested_scales, offset, pairs = base
    kernels.merge_nf4(packed, scales, scale_code, nested_scales, offset, pairs, a, scaled_b, weight)


@merged.register_fake
def _(
    base: list[torch.Tensor], shape: list[int], a: torch.Tensor, scaled_b: torch.Tensor, again: bool
) -> torch.Tensor:
    return torch.empty(shape, dtype=a.dtype, device=a.device)
