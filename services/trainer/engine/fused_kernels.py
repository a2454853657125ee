"""Triton kernels of `fusing`, imported on a GPU only; each with its gradient."""

from typing import Any

import torch
import triton
import triton.language as tl

ELEMENTS = 1024  # a program's, of a gate


def gated(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) · up, of any shape."""
    if torch.is_grad_enabled() and (gate.requires_grad or up.requires_grad):
        return _Gated.apply(gate, up)
    return _gate(gate.contiguous(), up.contiguous())


def rotated(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `fusing.rotated_plainly`; the heads of a token lie side by side in what is returned."""
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad):
        return _Rotated.apply(q, k, cos, sin)
    return _rotate(q, k, cos, sin, 1.0)


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        gate, up = gate.contiguous(), up.contiguous()
        ctx.save_for_backward(gate, up)
        return _gate(gate, up)

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gate, up = ctx.saved_tensors
        slope = slope.contiguous()
        d_gate, d_up = torch.empty_like(gate), torch.empty_like(up)
        count = gate.numel()
        _gate_backward[(triton.cdiv(count, ELEMENTS),)](
            slope, gate, up, d_gate, d_up, count, ELEMENTS=ELEMENTS
        )
        return d_gate, d_up


class _Rotated(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.save_for_backward(cos, sin)
        return _rotate(q, k, cos, sin, 1.0)

    @staticmethod
    def backward(ctx: Any, d_q: torch.Tensor, d_k: torch.Tensor) -> tuple[Any, ...]:
        """Turned back: a rotation's transpose is its inverse."""
        cos, sin = ctx.saved_tensors
        return (*_rotate(d_q, d_k, cos, sin, -1.0), None, None)


def _gate(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(gate)
    count = gate.numel()
    _gate_forward[(triton.cdiv(count, ELEMENTS),)](gate, up, out, count, ELEMENTS=ELEMENTS)
    return out


def _rotate(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, sign: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """q (B, H, T, D) and k (B, K, T, D) of any strides but that of D; cos, sin (B or 1, T, D)."""
    batch, heads, length, width = q.shape
    q, k = (one if one.stride(-1) == 1 else one.contiguous() for one in (q, k))
    cos, sin = cos.contiguous(), sin.contiguous()
    found = []
    for one in (q, k):
        shape = (batch, length, one.shape[1], width)
        found.append(torch.empty(shape, dtype=one.dtype, device=one.device).transpose(1, 2))
    of_row = cos.stride(0) if cos.shape[0] == batch else 0
    _turn[(batch * length,)](
        q, k, *found, cos, sin, sign, length, of_row,
        *q.stride()[:3], *k.stride()[:3], *found[0].stride()[:3], *found[1].stride()[:3],
        Q_HEADS=heads, K_HEADS=k.shape[1], HALF=width // 2,
        Q_BLOCK=triton.next_power_of_2(heads), K_BLOCK=triton.next_power_of_2(k.shape[1]),
        WIDTH=triton.next_power_of_2(width // 2),
    )  # fmt: skip
    return found[0], found[1]


@triton.jit
def _gate_forward(gate, up, out, count, ELEMENTS: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * ELEMENTS + tl.arange(0, ELEMENTS)
    inside = at < count
    g = tl.load(gate + at, mask=inside, other=0).to(tl.float32)
    u = tl.load(up + at, mask=inside, other=0).to(tl.float32)
    tl.store(out + at, (g * tl.sigmoid(g) * u).to(out.dtype.element_ty), mask=inside)


@triton.jit
def _gate_backward(slope, gate, up, d_gate, d_up, count, ELEMENTS: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * ELEMENTS + tl.arange(0, ELEMENTS)
    inside = at < count
    d = tl.load(slope + at, mask=inside, other=0).to(tl.float32)
    g = tl.load(gate + at, mask=inside, other=0).to(tl.float32)
    u = tl.load(up + at, mask=inside, other=0).to(tl.float32)
    share = tl.sigmoid(g)
    passed = g * share
    tl.store(d_up + at, (d * passed).to(d_up.dtype.element_ty), mask=inside)
    tl.store(d_gate + at, (d * u * (share + passed * (1 - share))).to(d_gate.dtype.element_ty), mask=inside)


@triton.jit
def _turn(
    q, k, q_out, k_out, cos, sin, sign, length, of_row,
    q_b, q_h, q_t, k_b, k_h, k_t, qo_b, qo_h, qo_t, ko_b, ko_h, ko_t,
    Q_HEADS: tl.constexpr, K_HEADS: tl.constexpr, HALF: tl.constexpr,
    Q_BLOCK: tl.constexpr, K_BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row, token = (tl.program_id(0) // length).to(tl.int64), (tl.program_id(0) % length).to(tl.int64)
    column = tl.arange(0, WIDTH)
    angle = row * of_row + token * 2 * HALF + column
    c = tl.load(cos + angle, mask=column < HALF, other=0).to(tl.float32)[None, :]
    s = tl.load(sin + angle, mask=column < HALF, other=0).to(tl.float32)[None, :] * sign
    _turn_heads(
        q + row * q_b + token * q_t, q_h, q_out + row * qo_b + token * qo_t, qo_h, c, s,
        Q_HEADS, HALF, Q_BLOCK, WIDTH,
    )  # fmt: skip
    _turn_heads(
        k + row * k_b + token * k_t, k_h, k_out + row * ko_b + token * ko_t, ko_h, c, s,
        K_HEADS, HALF, K_BLOCK, WIDTH,
    )  # fmt: skip


@triton.jit
def _turn_heads(
    x, x_h, out, out_h, c, s,
    HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    head, column = tl.arange(0, BLOCK)[:, None], tl.arange(0, WIDTH)[None, :]
    inside = (head < HEADS) & (column < HALF)
    low = tl.load(x + head * x_h + column, mask=inside, other=0).to(tl.float32)
    high = tl.load(x + head * x_h + column + HALF, mask=inside, other=0).to(tl.float32)
    tl.store(out + head * out_h + column, (low * c - high * s).to(out.dtype.element_ty), mask=inside)
    tl.store(out + head * out_h + column + HALF, (high * c + low * s).to(out.dtype.element_ty), mask=inside)
