"""A linear layer with several adapters, of which one acts at a time, or none.

PEFT's own forward multiplies with A and B in the adapters' float32, with casts of all activations to it and
back, and looks through its dictionaries in every layer. Here the acting adapter is used in the compute type:

    y = W x + (s B) (A x)

Base and adapter stay apart: merged, weights in bfloat16 would lose what a small step changed (less than
2⁻⁸ of a weight), and a policy that is trained has to be the one that wrote. With gradients they go to the
float32 masters; without, copies are used whose place in memory stays, as CUDA graphs need it.
"""

from typing import Any, cast

import torch
from peft.tuners.lora.layer import LoraLayer
from torch.nn.functional import linear


def switch(model: Any, dtype: torch.dtype) -> list[Any]:
    """Give every plain LoRA layer of the model the forward above; those layers, for `turn_to`.

    No adapter acts before that. They stay LoRA layers for PEFT: saved, loaded, switched off. Layers with
    DoRA keep PEFT's forward.
    """
    layers = [part for part in model.modules() if _is_plain(part)]
    for part in layers:
        layer = cast("Any", part)
        layer.__class__ = _switched(type(layer))
        a, b = (one.detach() for one in _masters(layer, layer.active_adapters[0]))
        layer.register_buffer("acting_a", torch.empty_like(a, dtype=dtype), persistent=False)
        layer.register_buffer("acting_b", torch.empty_like(b, dtype=dtype), persistent=False)
    return layers


@torch.no_grad()
def turn_to(layers: list[Any], adapter: str) -> None:
    """Let this adapter act, as its masters are now."""
    if not layers:
        return
    for layer in layers:
        layer.acting = adapter
    a, b = zip(*(_masters(layer, adapter) for layer in layers), strict=True)
    scaled = torch._foreach_mul(b, [layer.scaling[adapter] for layer in layers])  # noqa: SLF001
    torch._foreach_copy_([layer.acting_a for layer in layers], a)
    torch._foreach_copy_([layer.acting_b for layer in layers], scaled)


class Switched(torch.nn.Module):
    """The forward of a LoRA layer after `switch`, mixed into its class."""

    acting: str

    def forward(self, x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """(…, in) → (…, out)."""
        layer: Any = self
        y = layer.base_layer(x)
        if layer.disable_adapters:
            return y
        a, scaled_b = layer.acting_a, layer.acting_b
        if torch.is_grad_enabled():
            master_a, master_b = _masters(layer, layer.acting)
            a, scaled_b = master_a.to(a.dtype), (master_b * layer.scaling[layer.acting]).to(a.dtype)
        small = linear(x, a).flatten(0, -2)  # (T, r)
        return torch.addmm(y.flatten(0, -2), small, scaled_b.T).view_as(y)


_classes: dict[type, type] = {}


def _switched(kind: type) -> type:
    if kind not in _classes:
        _classes[kind] = type(f"Switched{kind.__name__}", (Switched, kind), {})
    return _classes[kind]


def _is_plain(part: Any) -> bool:
    return (
        isinstance(part, LoraLayer)
        and isinstance(getattr(part, "base_layer", None), torch.nn.Linear)
        and not part.lora_variant
    )


def _masters(layer: Any, adapter: str) -> tuple[torch.Tensor, torch.Tensor]:
    return layer.lora_A[adapter].weight, layer.lora_B[adapter].weight
