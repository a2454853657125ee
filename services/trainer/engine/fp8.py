"""Products with frozen weights in FP8: half the bytes and twice the operations of bf16, for a coarser sum.

e4m3 with a float32 scale for every row of both factors (Micikevicius et al., "FP8 Formats for Deep Learning",
2022; rows as in torch's own `_scaled_mm`). The adapter is too small a change to survive being rounded
together with its base, so it stays apart, in bf16:

    y = x̂ Ŵᵀ + (x Aᵀ)(s B)ᵀ    dX = d̂Y Ŵ + (dY s B) A    dB = s dYᵀ (x Aᵀ)    dA = (dY s B)ᵀ x

Both passes sum over rows, so the weight is held in both orders, one byte each.
"""

from typing import Any, NamedTuple

import torch

LARGEST = torch.finfo(torch.float8_e4m3fn).max  # 448
SMALLEST = 1e-12  # of a row's largest value: a row of zeros has a scale too
CAPABILITY = (8, 9)  # of the first GPUs that multiply FP8: Ada; Hopper has 9.0


class Rounded(NamedTuple):
    """A matrix in FP8, and what its rows are to be multiplied by."""

    values: torch.Tensor  # (N, K) float8_e4m3fn
    scales: torch.Tensor  # (N, 1) float32


def is_possible(device: torch.device) -> bool:
    """On CPUs by emulation: slow, for tests."""
    return device.type != "cuda" or torch.cuda.get_device_capability(device) >= CAPABILITY


def rounded(matrix: torch.Tensor) -> Rounded:
    """To the nearest e4m3 value, each row scaled so that its largest is 448."""
    scales = matrix.abs().amax(1, keepdim=True).float().clamp(min=SMALLEST) / LARGEST
    return Rounded((matrix.float() / scales).to(torch.float8_e4m3fn), scales)


def times(left: Rounded, right: Rounded, dtype: torch.dtype) -> torch.Tensor:
    """left (M, K) times the transpose of right (N, K), summed in float32: (M, N)."""
    if not left.values.is_cuda:
        exact, other = (one.values.float() * one.scales for one in (left, right))
        return (exact @ other.T).to(dtype)
    product: torch.Tensor = torch._scaled_mm(  # noqa: SLF001  the only way to it in torch 2
        left.values,
        right.values.T,
        scale_a=left.scales,
        scale_b=right.scales.T,
        out_dtype=dtype,
        use_fast_accum=True,  # as the hardware sums by itself: a fifth faster
    )
    return product


class ProductInFp8(torch.autograd.Function):
    """A linear layer with its adapter; gradients for x and for the adapter's float32 masters."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,  # (…, in)
        rows: torch.Tensor,  # (out, in) FP8
        row_scales: torch.Tensor,  # (out, 1)
        columns: torch.Tensor,  # (in, out) FP8
        column_scales: torch.Tensor,  # (in, 1)
        bias: torch.Tensor | None,
        a: torch.Tensor,  # (r, in)
        scaled_b: torch.Tensor,  # (out, r)
        _master_a: torch.Tensor,
        _master_b: torch.Tensor,
        factor: float,
    ) -> torch.Tensor:
        flat = x.flatten(0, -2)  # (T, in)
        low = flat @ a.T  # (T, r)
        y = times(rounded(flat), Rounded(rows, row_scales), x.dtype)
        y = torch.addmm(y, low, scaled_b.T)
        if bias is not None:
            y = y + bias
        ctx.save_for_backward(x, columns, column_scales, a, scaled_b, low)
        ctx.factor = factor
        return y.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, d_y: torch.Tensor) -> tuple[Any, ...]:
        x, columns, column_scales, a, scaled_b, low = ctx.saved_tensors
        d_flat = d_y.flatten(0, -2)  # (T, out)
        d_low = d_flat @ scaled_b  # (T, r)
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = times(rounded(d_flat), Rounded(columns, column_scales), x.dtype)
            d_x = torch.addmm(d_x, d_low, a).view_as(x)
        d_b = (d_flat.T @ low).float() * ctx.factor
        d_a = (d_low.T @ x.flatten(0, -2)).float()
        return d_x, None, None, None, None, None, None, None, d_a, d_b, None
