"""Norms, gates and rotations of a decoder in one kernel each, on a GPU.

transformers writes them as chains of small operations: of some seventy kernels that a layer of Qwen2 takes
for one token, forty are these. Sums are made in float32 and rounded once. What a class computes is tried
with random numbers first; where it is something else, its forward stays.
"""

from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import Any

import torch
from torch.nn.functional import rms_norm, silu

ROTATION = "apply_rotary_pos_emb"  # the function's name in transformers' modules
TRIED = 8  # rows of random numbers
ROUNDING = 0.02  # of the largest value: other formulas are further apart, roundings of bfloat16 are not
Rotation = Callable[..., tuple[torch.Tensor, torch.Tensor]]


def fuse(model: Any) -> None:
    """Give the parts of a causal LM on a GPU faster forwards, with the gradients that inputs need.

    Weights of norms get none: for a model whose base is frozen.
    """
    from services.trainer.engine import fused_kernels as kernels

    parts = list(model.modules())
    _replace((part for part in parts if _is_norm(part)), _normed, model)
    _replace((part for part in parts if _is_gated(part)), lambda part: _gated_by(part, kernels.gated), model)
    for part in parts:
        forward = type(part).forward
        if (
            ROTATION in getattr(forward, "__code__", fuse.__code__).co_names
            and forward.__globals__.get(ROTATION) is not None
            and rotates_by_halves(forward.__globals__[ROTATION])
        ):
            part.forward = MethodType(with_global(forward, ROTATION, kernels.rotated), part)


def _replace(parts: Iterable[Any], fused: Callable[[Any], Callable[..., Any]], model: Any) -> None:
    """Of each class all, or none."""
    agrees: dict[type, bool] = {}
    for part in parts:
        forward = fused(part)
        if type(part) not in agrees:
            agrees[type(part)] = _agree(part, forward, model)
        if agrees[type(part)]:
            part.forward = forward


@torch.no_grad()
def _agree(part: Any, fused: Callable[..., Any], model: Any) -> bool:
    weight = part.weight if _is_norm(part) else model.get_input_embeddings().weight
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(TRIED, weight.shape[-1], generator=generator).to(weight)
    return _near(fused(x), part(x)) and (not _is_gated(part) or _near(silu(x), part.act_fn(x)))


def _near(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return float((found - expected).abs().max()) <= ROUNDING * float(expected.abs().max())


def _is_norm(part: Any) -> bool:
    return type(part).__name__.endswith("RMSNorm") and hasattr(part, "variance_epsilon")


def _normed(part: Any) -> Callable[..., Any]:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, part.weight.shape, part.weight, part.variance_epsilon)

    return forward


def _is_gated(part: Any) -> bool:
    return all(hasattr(part, name) for name in ("gate_proj", "up_proj", "down_proj", "act_fn"))


def _gated_by(part: Any, gated: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    def forward(x: torch.Tensor) -> torch.Tensor:
        down: torch.Tensor = part.down_proj(gated(part.gate_proj(x), part.up_proj(x)))
        return down

    return forward


def gated_plainly(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """What `fused_kernels.gated` computes (Shazeer 2020, arXiv 2002.05202: SwiGLU)."""
    return silu(gate) * up


def rotated_plainly(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What `fused_kernels.rotated` computes: q (B, H, T, D), k (B, K, T, D), cos and sin (B or 1, T, D)."""
    cos, sin = cos[:, None], sin[:, None]

    def one(x: torch.Tensor) -> torch.Tensor:
        low, high = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-high, low], dim=-1) * sin

    return one(q), one(k)


def rotates_by_halves(rotation: Rotation) -> bool:
    """Whether it turns the first half of a head against the second, as Llama's does."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, heads, 3, 8, generator=generator) for heads in (4, 2))
    cos, sin = (torch.randn(2, 3, 4, generator=generator).repeat(1, 1, 2) for _ in range(2))
    try:
        found = rotation(q, k, cos, sin)
        torch.testing.assert_close(tuple(found), rotated_plainly(q, k, cos, sin))
    except (AssertionError, TypeError, RuntimeError, ValueError):
        return False
    return True


def with_global(function: Any, name: str, value: Any) -> FunctionType:
    """The function with another meaning of one of its globals, for itself alone."""
    named = {**function.__globals__, name: value}
    copied = FunctionType(
        function.__code__, named, function.__name__, function.__defaults__, function.__closure__
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied
