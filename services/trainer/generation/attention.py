"""Attention for rows of different lengths that are written at once, padded on the left.

The engine's own knows documents and no mask: transformers makes none for an attention that it has no mask
for, and padding would be attended to silently. This one is torch's, with transformers' masks; the queries
of a group of heads are laid beside one another, so that keys and values are not repeated for each of them
(the newest transformers does so itself, older ones copy the cache once a query head).
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

NAME = "ratchet_writing"


@contextlib.contextmanager
def padded(model: Any) -> Iterator[None]:
    """The causal LM attends to what its mask says, and afterwards as before."""
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    before = model.config._attn_implementation  # noqa: SLF001  transformers has no public name for it
    model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def _attend(
    module: Any,
    query: Any,  # (B, H, T, D)
    key: Any,  # (B, K, S, D): K divides H
    value: Any,  # (B, K, S, D)
    attention_mask: Any,  # (B, 1, T, S) bool or None
    scaling: float | None = None,
    **options: Any,
) -> tuple[Any, None]:
    """The output (B, T, H, D)."""
    batch, heads, length, width = query.shape
    if length > 1:
        attended, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **options
        )
        return attended, None
    grouped = query.view(batch, key.shape[1], -1, width)  # (B, K, H / K, D)
    attended = scaled_dot_product_attention(grouped, key, value, attn_mask=attention_mask, scale=scaling)
    return attended.reshape(batch, 1, heads, value.shape[-1]), None
