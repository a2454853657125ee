"""Held-out loss of a model: nats and bytes of every content, for bits per byte."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from services.trainer.packing import Row, collate
from services.trainer.samples import Sample

LOGITS_BYTES = 256 * 2**20  # float32 logits held at once at most; a 150k vocabulary has 600 kB a token


@dataclass(frozen=True)
class ContentLoss:
    """The loss of a content's code tokens: format and prompt do not count."""

    content_id: int
    nats: float
    tokens: int
    bytes: int


@torch.no_grad()
def losses(
    model: torch.nn.Module,
    rows: Sequence[Row],
    *,
    batch_size: int,
    pad_id: int,
    flatten: bool = False,
    on_batch: Callable[[int, int], None] | None = None,
) -> list[ContentLoss]:
    """Every content's loss, by content id; leaves the model in the mode it was in.

    `model` is a causal LM, bare or with adapters. Only the hidden states that predict code go through
    the output layer, so memory does not grow with the vocabulary times the row.
    """
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    totals: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    try:
        for start in range(0, len(rows), batch_size):
            batch = rows[start : start + batch_size]
            tensors = collate(batch, pad_id, flatten=flatten)
            for sample, nats in zip(
                (sample for row in batch for sample in row.samples),
                _sample_nats(model, batch, tensors, device, flatten),
                strict=True,
            ):
                content = totals[sample.content_id]
                content[0] += nats
                content[1] += sample.code_end - sample.code_start
                content[2] += sample.code_bytes
            if on_batch is not None:
                on_batch(min(start + batch_size, len(rows)), len(rows))
    finally:
        model.train(was_training)
    return [
        ContentLoss(content_id, nats, int(tokens), int(size))
        for content_id, (nats, tokens, size) in sorted(totals.items())
    ]


def _sample_nats(
    model: torch.nn.Module,
    rows: Sequence[Row],
    tensors: dict[str, torch.Tensor],
    device: torch.device,
    flatten: bool,
) -> list[float]:
    """The summed negative log-likelihood of each sample's code, in row order."""
    width = tensors["input_ids"].shape[1]
    spans = _code_spans(rows, width, flatten)  # per sample: positions in the flattened (B * T) batch
    predicted = torch.cat([torch.arange(start, end) for start, end in spans])
    targets = tensors["input_ids"].flatten()[predicted].to(device)
    inputs = {name: tensors[name].to(device) for name in ("input_ids", "position_ids")}
    causal_lm: Any = model.get_base_model() if hasattr(model, "get_base_model") else model
    hidden = causal_lm.base_model(**inputs, use_cache=False).last_hidden_state  # (B, T, hidden)
    before = hidden.flatten(0, 1)[(predicted - 1).to(device)]  # the state that predicts each target
    head = causal_lm.get_output_embeddings()
    chunk = max(1, LOGITS_BYTES // (4 * head.weight.shape[0]))
    nats = torch.cat(
        [
            cross_entropy(head(states).float(), wanted, reduction="none")
            for states, wanted in zip(torch.split(before, chunk), torch.split(targets, chunk), strict=True)
        ]
    )
    sizes = [end - start for start, end in spans]
    return [float(part.double().sum()) for part in torch.split(nats, sizes)]


def _code_spans(rows: Sequence[Row], width: int, flatten: bool) -> list[tuple[int, int]]:
    spans = []
    offset = 0
    for number, row in enumerate(rows):
        at = offset if flatten else number * width
        for sample in row.samples:
            spans.append((at + sample.code_start, at + sample.code_end))
            at += len(sample.ids)
        offset = at
    return spans


def bits_per_byte(items: Sequence[ContentLoss]) -> float:
    """Bits a byte of code costs, over all items together; NaN without any."""
    size = sum(item.bytes for item in items)
    return sum(item.nats for item in items) / math.log(2) / size if size else math.nan


def nats_per_token(items: Sequence[ContentLoss]) -> float:
    """Mean cross entropy of a code token, the usual evaluation loss; NaN without any."""
    tokens = sum(item.tokens for item in items)
    return sum(item.nats for item in items) / tokens if tokens else math.nan


def first_pairs(samples: Sequence[Sample], most: int | None) -> list[Sample]:
    """At most so many samples of each content, in order: what an evaluation is limited to."""
    taken: dict[int, int] = defaultdict(int)
    kept = []
    for sample in samples:
        taken[sample.content_id] += 1
        if most is None or taken[sample.content_id] <= most:
            kept.append(sample)
    return kept
