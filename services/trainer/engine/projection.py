"""A linear layer and its adapter as one product, forward and backward.

PEFT's own forward multiplies by base, A and B one after the other, the latter two in the adapters' float32,
with a clone, casts, a scaling and a sum between. Here the weight is merged (`nf4.merged`) and multiplied by
once; only the adapters' gradients still go through rank r:

    dX = dY W    dB = s dYᵀ (X Aᵀ)    dA = (dY s B)ᵀ X

Masters are float32; copies in the compute type are made once after every optimizer step.
"""

from typing import Any, cast

import torch
from peft.tuners.lora.layer import LoraLayer
from torch.distributed.tensor import DTensor
from torch.nn.functional import linear

from services.trainer.engine import fp8, nf4
from services.trainer.engine.switched import Switched


def plain(model: Any) -> list[Any]:
    """The model's LoRA layers that can be one product: one adapter for good, no dropout, no DoRA."""
    return [
        part
        for part in model.modules()
        if isinstance(part, LoraLayer)
        and isinstance(getattr(part, "base_layer", None), torch.nn.Linear)
        and not isinstance(part, Switched)
        and len(part.lora_A) == len(part.active_adapters) == 1
        and not part.lora_variant
        and all(isinstance(dropout, torch.nn.Identity) for dropout in part.lora_dropout.values())
    ]


def unite(layer: Any, dtype: torch.dtype, *, keep: bool, save: bool, in_fp8: bool = False) -> None:
    """Give a LoRA layer the united product. It stays a LoRA layer for PEFT: saved, loaded, switched off.

    keep: its merged weight stays from step to step. Otherwise it is merged when needed; save: once for a
    forward pass and the backward pass that follows, as suits a layer that is recomputed between them.
    in_fp8: instead, the base is multiplied with in FP8 and the adapter beside it (`fp8`).
    """
    united = cast("Any", layer)
    united.__class__ = _united(type(layer))
    name = layer.active_adapters[0]
    a, b = layer.lora_A[name].weight, layer.lora_B[name].weight
    united.masters = (a, b)
    united.factor = float(layer.scaling[name])
    united.shape = [b.shape[0], a.shape[1]]
    split = isinstance(layer.base_layer.weight, DTensor)  # whole only while its layer computes
    united.in_fp8 = in_fp8 and not split
    united.keep, united.save = keep and not split and not in_fp8, save and not split
    parts = [] if split or in_fp8 else nf4.parts(layer.base_layer)
    united.count = len(parts)
    for number, part in enumerate(parts):
        united.register_buffer(f"part_{number}", part, persistent=False)
    united.register_buffer("a", a.detach().to(dtype), persistent=False)
    united.register_buffer("scaled_b", (b.detach() * united.factor).to(dtype), persistent=False)
    united.register_buffer("kept", united.merge() if united.keep else None, persistent=False)
    if united.in_fp8:
        _round(united, nf4.dense(layer.base_layer))


def _round(united: Any, weight: torch.Tensor) -> None:
    """Keep a frozen weight (out, in) in FP8, by rows and by columns."""
    for name, matrix in (("rows", weight), ("columns", weight.T.contiguous())):
        values, scales = fp8.rounded(matrix)
        united.register_buffer(f"fp8_{name}", values, persistent=False)
        united.register_buffer(f"fp8_{name}_scales", scales, persistent=False)


@torch.no_grad()
def refresh(layer: Any) -> None:
    """After the masters changed: their copies, and the merged weight if it is kept, made anew in place."""
    a, b = layer.masters
    layer.a.copy_(a)
    layer.scaled_b.copy_(b * layer.factor)
    if layer.keep:
        nf4.merge_into(layer.kept, layer.parts(), layer.a, layer.scaled_b)


class _United(torch.nn.Module):
    """The forward of a LoRA layer after `unite`, mixed into its class."""

    def forward(self, x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """(…, in) → (…, out). Evaluated as it is served: base and adapter apart."""
        layer: Any = self
        if layer.disable_adapters:
            return layer.base_layer(x)
        if not layer.training:
            return layer.base_layer(x) + linear(linear(x, layer.a), layer.scaled_b)
        bias, tail = layer.base_layer.bias, (layer.a, layer.scaled_b, *layer.masters, layer.factor)
        if layer.in_fp8:
            rows, columns = (
                (layer.fp8_rows, layer.fp8_rows_scales),
                (layer.fp8_columns, layer.fp8_columns_scales),
            )
            return fp8.ProductInFp8.apply(x, *rows, *columns, bias, *tail)
        if layer.keep or layer.save:
            weight = layer.kept if layer.keep else self.merge()
            return _Product.apply(x, weight, bias, *tail)
        return _ProductMergedTwice.apply(x, bias, *tail, layer.shape, *self.parts())

    def parts(self) -> list[torch.Tensor]:
        layer: Any = self
        if not layer.count:
            return [layer.base_layer.weight.detach()]
        return [getattr(layer, f"part_{number}") for number in range(layer.count)]

    def merge(self) -> torch.Tensor:
        layer: Any = self
        return nf4.merged(self.parts(), layer.shape, layer.a, layer.scaled_b, again=False)


_classes: dict[type, type] = {}


def _united(kind: type) -> type:
    if kind not in _classes:
        _classes[kind] = type(f"United{kind.__name__}", (_United, kind), {})
    return _classes[kind]


def _gradients(
    x: torch.Tensor, d_y: torch.Tensor, weight: torch.Tensor, a: torch.Tensor, scaled_b: torch.Tensor,
    factor: float, *, needs_x: bool,
) -> tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Of x (…, in), A (r, in) and B (out, r), the latter two in float32."""
    d_x = d_y @ weight if needs_x else None
    rows, d_rows = x.flatten(0, -2), d_y.flatten(0, -2)  # (T, in), (T, out)
    d_b = (d_rows.T @ (rows @ a.T)).float() * factor
    d_a = ((d_rows @ scaled_b).T @ rows).float()
    return d_x, d_a, d_b


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,  # (…, in)
        weight: torch.Tensor,  # (out, in), merged
        bias: torch.Tensor | None,
        a: torch.Tensor,
        scaled_b: torch.Tensor,
        _master_a: torch.Tensor,
        _master_b: torch.Tensor,
        factor: float,
    ) -> torch.Tensor:
        ctx.save_for_backward(x, weight, a, scaled_b)
        ctx.factor = factor
        return linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, d_y: torch.Tensor) -> tuple[Any, ...]:
        x, weight, a, scaled_b = ctx.saved_tensors
        d_x, d_a, d_b = _gradients(x, d_y, weight, a, scaled_b, ctx.factor, needs_x=ctx.needs_input_grad[0])
        return d_x, None, None, None, None, d_a, d_b, None


class _ProductMergedTwice(torch.autograd.Function):
    """As `_Product`, with the weight merged in each pass: none is kept between them."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        bias: torch.Tensor | None,
        a: torch.Tensor,
        scaled_b: torch.Tensor,
        _master_a: torch.Tensor,
        _master_b: torch.Tensor,
        factor: float,
        shape: list[int],
        *parts: torch.Tensor,
    ) -> torch.Tensor:
        ctx.save_for_backward(x, a, scaled_b, *parts)
        ctx.factor, ctx.shape = factor, shape
        return linear(x, nf4.merged(list(parts), shape, a, scaled_b, again=False), bias)

    @staticmethod
    def backward(ctx: Any, d_y: torch.Tensor) -> tuple[Any, ...]:
        x, a, scaled_b, *parts = ctx.saved_tensors
        weight = nf4.merged(parts, ctx.shape, a, scaled_b, again=True)
        d_x, d_a, d_b = _gradients(x, d_y, weight, a, scaled_b, ctx.factor, needs_x=ctx.needs_input_grad[0])
        return d_x, None, None, None, d_a, d_b, None, None, *([None] * len(parts))
