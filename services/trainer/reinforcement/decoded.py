"""An NF4 base that is decoded once, where there is room for it, instead of in every pass over it.

bitsandbytes decodes a weight whenever more than one row is multiplied with it: for the step of a token that
is four times the bytes of the multiplication itself. What is decoded is the same each time, so a team on
decoded weights is the team on NF4 ones, bit for bit; what it gives up is the memory that NF4 had saved.
"""

from typing import Any

import torch

from services.trainer.engine import nf4
from services.trainer.plan.decoding import is_decoded


def decode(model: Any, free_bytes: int | None = None) -> bool:
    """Replace the model's NF4 layers by plain ones if all of them find room; whether that was done.

    free_bytes: of the model's device; by default what is free on its GPU, and nothing on the CPU.
    """
    layers = {name: layer for name, layer in model.named_modules() if _is_nf4(layer)}
    free = _free_bytes(model.device) if free_bytes is None else free_bytes
    if not layers or not is_decoded(sum(map(_decoded_bytes, layers.values())), free):
        return False
    for name, layer in layers.items():
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, _plain(layer))
    return True


def _is_nf4(layer: Any) -> bool:
    return getattr(getattr(layer, "weight", None), "quant_state", None) is not None


def _decoded_bytes(layer: Any) -> int:
    state = layer.weight.quant_state
    return int(state.shape.numel() * state.dtype.itemsize)


def _plain(layer: Any) -> torch.nn.Linear:
    plain = torch.nn.Linear(layer.in_features, layer.out_features, bias=False, device="meta")
    plain.weight = torch.nn.Parameter(nf4.dense(layer), requires_grad=False)
    plain.bias = layer.bias
    return plain


def _free_bytes(device: torch.device) -> int:
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
