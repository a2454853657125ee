"""Held-out loss of a model: nats and bytes of every content, for bits per byte."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from services.trainer.engine.batch import batch_of
from services.trainer.engine.compute import Compute
from services.trainer.engine.distributed import Distribution, through
from services.trainer.packing import Row
from services.trainer.samples.sample import Sample

MOST_NATS = 700.0  # e to this power is the largest that a float holds, nearly
LOGITS_BYTES = 256 * 2**20  # float32 logits held at once at most; a 150k vocabulary has 600 kB a token


@dataclass(frozen=True)
class ContentLoss:
    """The loss of a content's code tokens: format and prompt do not count."""

    content_id: int
    nats: float
    tokens: int
    bytes: int
    correct: int  # tokens that were the most likely ones


class _Sum(NamedTuple):
    nats: float
    correct: int


@torch.no_grad()
def losses(
    compute: Compute,
    rows: Sequence[Row],
    *,
    rows_at_once: int,
    pad_id: int,
    longest: int,
    distribution: Distribution | None = None,
    on_rows: Callable[[int, int], None] | None = None,
) -> list[ContentLoss]:
    """Every content's loss, by content id, the same in every process; the model keeps its mode.

    Rows go through the model as in training, `rows_at_once` at a time, shared among the processes. Only
    the states that predict code go through the output layer, a part at a time, so memory does not grow
    with the vocabulary times the row. `longest` bounds a sample's tokens; `on_rows` hears of rows done.
    """
    model, distribution = compute.model, distribution or Distribution()
    device = next(model.parameters()).device
    chunks = [rows[start : start + rows_at_once] for start in range(0, len(rows), rows_at_once)]
    sums: dict[int, _Sum] = defaultdict(lambda: _Sum(0.0, 0))
    was_training = model.training
    model.eval()
    try:
        for turn in range(math.ceil(len(chunks) / distribution.world)):
            mine = turn * distribution.world + distribution.rank
            chunk = chunks[min(mine, len(chunks) - 1)]  # all run equally often: shards need one another
            found = through(model, _sample_sums, compute, chunk, pad_id, longest, device)
            if mine < len(chunks):
                for sample, its in zip(_samples(chunk), found, strict=True):
                    so_far = sums[sample.content_id]
                    sums[sample.content_id] = _Sum(so_far.nats + its.nats, so_far.correct + its.correct)
            if on_rows is not None:
                done = (turn + 1) * distribution.world * rows_at_once
                on_rows(min(done, len(rows)), len(rows))
    finally:
        model.train(was_training)
    return _by_content(rows, sums, distribution)


def bits_per_byte(items: Sequence[ContentLoss]) -> float:
    """Bits a byte of code costs, over all items together; NaN without any."""
    size = sum(item.bytes for item in items)
    return sum(item.nats for item in items) / math.log(2) / size if size else math.nan


def nats_per_token(items: Sequence[ContentLoss]) -> float:
    """Mean cross entropy of a code token, the usual evaluation loss; NaN without any."""
    tokens = sum(item.tokens for item in items)
    return sum(item.nats for item in items) / tokens if tokens else math.nan


def perplexity(items: Sequence[ContentLoss]) -> float:
    """Of the code's tokens, exp of the nats a token costs; NaN without any, infinite beyond a float."""
    nats = nats_per_token(items)
    return math.exp(nats) if math.isnan(nats) or nats < MOST_NATS else math.inf


def token_accuracy(items: Sequence[ContentLoss]) -> float:
    """Share of the code's tokens that the model would have written itself, greedily; NaN without any."""
    tokens = sum(item.tokens for item in items)
    return sum(item.correct for item in items) / tokens if tokens else math.nan


def first_samples(samples: Sequence[Sample], most: int | None) -> list[Sample]:
    """At most so many samples of each content, in order: what an evaluation is limited to."""
    taken: dict[int, int] = defaultdict(int)
    kept = []
    for sample in samples:
        taken[sample.content_id] += 1
        if most is None or taken[sample.content_id] <= most:
            kept.append(sample)
    return kept


def _samples(rows: Sequence[Row]) -> list[Sample]:
    return [sample for row in rows for sample in row.samples]


def _sample_sums(
    compute: Compute, rows: Sequence[Row], pad_id: int, longest: int, device: torch.device
) -> list[_Sum]:
    """In row order: the summed negative log-likelihood of what counts of a sample, and the right tokens."""
    batch = batch_of(rows, pad_id, longest)
    positions = []  # of the counted tokens in the batch
    sizes = []  # how many each sample has
    start = 0
    for sample in _samples(rows):
        positions += [torch.arange(start + first, start + last) for first, last in sample.counted]
        sizes.append(_tokens(sample))
        start += len(sample.ids)
    predicted = torch.cat(positions)  # (N,)
    wanted = batch.input_ids[predicted].to(device)
    states = compute.hidden(batch.to(device))[(predicted - 1).to(device)]  # (N, H)
    head = compute.model.get_output_embeddings().weight  # (V, H)
    chunk = max(1, LOGITS_BYTES // (4 * head.shape[0]))
    parts = [
        _judge(part @ head.T, targets)
        for part, targets in zip(states.split(chunk), wanted.split(chunk), strict=True)
    ]
    nats, hits = (torch.cat(each) for each in zip(*parts, strict=True))
    sums = [
        torch.stack((its_nats.double().sum(), its_hits.double().sum()))
        for its_nats, its_hits in zip(nats.split(sizes), hits.split(sizes), strict=True)
    ]
    return [_Sum(nats, int(correct)) for nats, correct in torch.stack(sums).tolist()]


def _judge(logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of targets (N,) under logits (N, V): nats, float32, and whether each is the most likely; both (N,)."""
    nats = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")
    return nats, logits.argmax(-1) == targets


def _by_content(rows: Sequence[Row], sums: dict[int, _Sum], distribution: Distribution) -> list[ContentLoss]:
    tokens: dict[int, int] = defaultdict(int)
    size: dict[int, int] = defaultdict(int)
    for sample in _samples(rows):
        tokens[sample.content_id] += _tokens(sample)
        size[sample.content_id] += sample.code_bytes
    contents = sorted(tokens)
    found = [sums.get(content, _Sum(0.0, 0)) for content in contents]
    nats = distribution.sum(*(each.nats for each in found))
    correct = distribution.sum(*(float(each.correct) for each in found))
    return [
        ContentLoss(content, its_nats, tokens[content], size[content], round(its_correct))
        for content, its_nats, its_correct in zip(contents, nats, correct, strict=True)
    ]


def _tokens(sample: Sample) -> int:
    return sum(last - first for first, last in sample.counted)
