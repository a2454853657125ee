"""Attention that never leaves a document: rows of many documents, no mask, no padding.

Known to transformers as `ratchet`. On a GPU flash-attn's variable-length kernel where it is installed,
torch's own otherwise, and cuDNN's when all documents are equally long (measured on an H200, 4 × 4096
tokens, 28 heads: 539 TFLOP/s forward and 443 backward, FlashAttention 2 320 and 272); on the CPU one
causal attention a document.
"""

import importlib.util
import inspect
import itertools
from functools import cache
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

NAME = "ratchet"
_flash_attn = False
FASTEST = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]


def register(*, flash_attn: bool = True) -> str:
    """Make it known to transformers; its name there, for `attn_implementation`.

    flash_attn: whether that package's kernel is used where it is installed.
    """
    global _flash_attn  # noqa: PLW0603  transformers calls by name alone, so the choice is the process's
    _flash_attn = flash_attn and importlib.util.find_spec("flash_attn") is not None
    AttentionInterface.register(NAME, _attend)
    return NAME


def _attend(
    module: Any,
    query: torch.Tensor,  # (1, H, T, D)
    key: torch.Tensor,  # (1, K, T, D): K divides H
    value: torch.Tensor,  # (1, K, T, D)
    attention_mask: torch.Tensor | None,
    *,
    boundaries: torch.Tensor | None = None,
    longest: int | None = None,
    even: bool = False,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """The output (1, T, H, D). Without boundaries all of it is one causal document, as in generation."""
    if boundaries is None or longest is None:
        return _plain(query, key, value, attention_mask, scaling), None
    if not query.is_cuda:
        return _each(query, key, value, boundaries, scaling), None
    if even:
        return _even(query, key, value, longest, scaling), None
    query, key, value = (tensor.transpose(1, 2).squeeze(0) for tensor in (query, key, value))
    return _varlen(query, key, value, boundaries, longest, scaling).unsqueeze(0), None


def _plain(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float | None,
) -> torch.Tensor:
    causal = mask is None and query.shape[2] > 1 and query.shape[2] == key.shape[2]
    gqa = query.shape[1] != key.shape[1]
    attended = scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=gqa
    )
    return attended.transpose(1, 2)


def _each(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, boundaries: torch.Tensor, scale: float | None
) -> torch.Tensor:
    edges = boundaries.unique_consecutive().tolist()
    gqa = query.shape[1] != key.shape[1]
    attended = [
        scaled_dot_product_attention(
            query[:, :, start:end], key[:, :, start:end], value[:, :, start:end],
            is_causal=True, scale=scale, enable_gqa=gqa,
        )
        for start, end in itertools.pairwise(edges)
    ]  # fmt: skip
    return torch.cat(attended, dim=2).transpose(1, 2)


def _even(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, length: int, scale: float | None
) -> torch.Tensor:
    def split(tensor: torch.Tensor) -> torch.Tensor:  # (1, H, T, D) → (T / length, H, length, D), no copy
        return tensor.transpose(1, 2).unflatten(1, (-1, length)).squeeze(0).transpose(1, 2)

    with sdpa_kernel(FASTEST, set_priority=True):
        attended = _plain(split(query), split(key), split(value), None, scale)
    return attended.flatten(0, 1).unsqueeze(0)


def _varlen(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
    boundaries: torch.Tensor, longest: int, scale: float | None,
) -> torch.Tensor:  # fmt: skip
    if _flash_attn:
        from flash_attn import flash_attn_varlen_func

        return flash_attn_varlen_func(
            query, key, value, boundaries, boundaries, longest, longest, softmax_scale=scale, causal=True
        )
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(
        query, key, value, boundaries, boundaries, longest, longest,
        scale=scale, window_size=(-1, 0), **_grouped(),
    )  # fmt: skip


@cache
def _grouped() -> dict[str, bool]:
    """torch before 2.12 groups query heads without being told."""
    from torch.nn.attention.varlen import varlen_attn

    return {"enable_gqa": True} if "enable_gqa" in inspect.signature(varlen_attn).parameters else {}
