"""Triton kernels, imported on a GPU only: NF4 plus adapter to bf16, and the slope of the cross entropy."""

import torch
import triton
import triton.language as tl

ROWS, BLOCKS, DEPTH = 128, 2, 64  # a program's rows, blocks of 64 columns, and how much rank at once
VOCABULARY = 8192  # logits a program holds at once


def merge_nf4(
    packed: torch.Tensor,  # (out · in / 2, 1) uint8
    scales: torch.Tensor,  # (out · in / 64,) uint8
    scale_code: torch.Tensor,  # (256,) float32
    nested_scales: torch.Tensor,  # (out · in / 64 / 256,) float32
    offset: torch.Tensor,  # () float32
    pairs: torch.Tensor,  # (256,) int64: the two float32 values of a byte
    a: torch.Tensor,  # (r, in)
    scaled_b: torch.Tensor,  # (out, r)
    out: torch.Tensor,  # (out, in)
) -> None:
    """Write an NF4 weight plus its adapter into `out`, rounded once."""
    rows, columns = out.shape
    grid = (triton.cdiv(rows, ROWS), triton.cdiv(columns, 64 * BLOCKS))
    _merge_nf4[grid](
        packed, scales, scale_code, nested_scales, offset, pairs, a, scaled_b, out, rows, columns, a.shape[0],
        ROWS=ROWS, BLOCKS=BLOCKS, DEPTH=DEPTH, num_warps=8,
    )  # fmt: skip


@triton.jit
def _merge_nf4(
    packed, scales, scale_code, nested_scales, offset, pairs, a, b, out,
    rows, columns, rank,
    ROWS: tl.constexpr, BLOCKS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    block = tl.program_id(1) * BLOCKS + tl.arange(0, BLOCKS)  # of 64 values, 32 bytes
    here = (row[:, None] < rows) & (block[None, :] < columns // 64)
    of_block = row[:, None] * (columns // 64) + block[None, :]
    quantised = tl.load(scales + of_block, mask=here, other=0).to(tl.int32)
    nested = tl.load(nested_scales + of_block // 256, mask=here, other=0.0)
    scale = tl.load(scale_code + quantised) * nested + tl.load(offset)  # (ROWS, BLOCKS)
    of_byte = of_block[:, :, None] * 32 + tl.arange(0, 32)[None, None, :]
    byte = tl.load(packed + of_byte, mask=here[:, :, None], other=0)  # (ROWS, BLOCKS, 32)
    pair = tl.load(pairs + byte.to(tl.int32))  # one look-up for the two values of a byte
    high = (pair & 0xFFFFFFFF).to(tl.int32).to(tl.float32, bitcast=True) * scale[:, :, None]
    low = (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True) * scale[:, :, None]
    weight = tl.reshape(tl.interleave(high, low), (ROWS, 64 * BLOCKS))
    column = tl.program_id(1) * 64 * BLOCKS + tl.arange(0, 64 * BLOCKS)
    for start in range(0, rank, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        b_part = tl.load(
            b + row[:, None] * rank + depth[None, :],
            mask=(row[:, None] < rows) & (depth[None, :] < rank), other=0.0,
        )  # fmt: skip
        a_part = tl.load(
            a + depth[:, None] * columns + column[None, :],
            mask=(depth[:, None] < rank) & (column[None, :] < columns), other=0.0,
        )  # fmt: skip
        weight = tl.dot(b_part, a_part, weight)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    tl.store(out + row[:, None] * columns + column[None, :], weight.to(out.dtype.element_ty), mask=inside)


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor, *, with_slope: bool) -> torch.Tensor:
    """Nats of every row (C,) float32; with_slope: the logits (C, V) become the gradient of their sum."""
    rows, vocabulary = logits.shape
    nats = torch.empty(rows, dtype=torch.float32, device=logits.device)
    _cross_entropy[(rows,)](
        logits, targets, nats, vocabulary, logits.stride(0),
        WITH_SLOPE=with_slope, CHUNK=VOCABULARY, num_warps=16,
    )  # fmt: skip
    return nats


@triton.jit
def _cross_entropy(
    logits, targets, nats, vocabulary, stride, WITH_SLOPE: tl.constexpr, CHUNK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    start_of_row = logits + row * stride
    wanted = tl.load(start_of_row + target).to(tl.float32)
    highest = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for start in range(0, vocabulary, CHUNK):  # Milakov & Gimelshein, "Online normalizer calculation", 2018
        place = start + tl.arange(0, CHUNK)
        part = tl.load(start_of_row + place, mask=place < vocabulary, other=-float("inf")).to(tl.float32)
        above = tl.maximum(highest, tl.max(part, 0))
        total = total * tl.exp(highest - above) + tl.sum(tl.exp(part - above), 0)
        highest = above
    tl.store(nats + row, highest + tl.log(total) - wanted)
    if WITH_SLOPE:
        for start in range(0, vocabulary, CHUNK):
            place = start + tl.arange(0, CHUNK)
            part = tl.load(start_of_row + place, mask=place < vocabulary, other=-float("inf")).to(tl.float32)
            slope = tl.exp(part - highest) / total - tl.where(place == target, 1.0, 0.0)
            tl.store(start_of_row + place, slope.to(logits.dtype.element_ty), mask=place < vocabulary)
