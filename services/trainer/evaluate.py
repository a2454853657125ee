"""Held-out loss of a model: nats and bytes of every content, for bits per byte."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from services.trainer.engine.batch import batch_of
from services.trainer.engine.compute import Compute
from services.trainer.engine.distributed import Distribution, through
from services.trainer.packing import Row
from services.trainer.samples.sample import Sample

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
    nats: dict[int, float] = defaultdict(float)
    was_training = model.training
    model.eval()
    try:
        for turn in range(math.ceil(len(chunks) / distribution.world)):
            mine = turn * distribution.world + distribution.rank
            chunk = chunks[min(mine, len(chunks) - 1)]  # all run equally often: shards need one another
            found = through(model, _sample_nats, compute, chunk, pad_id, longest, device)
            if mine < len(chunks):
                for sample, value in zip(_samples(chunk), found, strict=True):
                    nats[sample.content_id] += value
            if on_rows is not None:
                done = (turn + 1) * distribution.world * rows_at_once
                on_rows(min(done, len(rows)), len(rows))
    finally:
        model.train(was_training)
    return _by_content(rows, nats, distribution)


def bits_per_byte(items: Sequence[ContentLoss]) -> float:
    """Bits a byte of code costs, over all items together; NaN without any."""
    size = sum(item.bytes for item in items)
    return sum(item.nats for item in items) / math.log(2) / size if size else math.nan


def nats_per_token(items: Sequence[ContentLoss]) -> float:
    """Mean cross entropy of a code token, the usual evaluation loss; NaN without any."""
    tokens = sum(item.tokens for item in items)
    return sum(item.nats for item in items) / tokens if tokens else math.nan


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


def _code(sample: Sample) -> tuple[int, int]:
    """Its code tokens; the first token of a document has nothing before it that could predict it."""
    return max(1, sample.code_start), max(1, sample.code_end)


def _sample_nats(
    compute: Compute, rows: Sequence[Row], pad_id: int, longest: int, device: torch.device
) -> list[float]:
    """The summed negative log-likelihood of each sample's code, in row order."""
    batch = batch_of(rows, pad_id, longest)
    spans = []  # per sample: its code's positions in the batch
    start = 0
    for sample in _samples(rows):
        spans.append(tuple(start + at for at in _code(sample)))
        start += len(sample.ids)
    predicted = torch.cat([torch.arange(begin, end) for begin, end in spans])  # (N,)
    wanted = batch.input_ids[predicted].to(device)
    states = compute.hidden(batch.to(device))[(predicted - 1).to(device)]  # (N, H)
    head = compute.model.get_output_embeddings().weight  # (V, H)
    chunk = max(1, LOGITS_BYTES // (4 * head.shape[0]))
    nats = torch.cat(
        [
            _cross_entropy(part @ head.T, targets)
            for part, targets in zip(states.split(chunk), wanted.split(chunk), strict=True)
        ]
    )
    return [float(part.double().sum()) for part in nats.split([end - begin for begin, end in spans])]


def _cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Nats (N,) float32 of targets (N,) under logits (N, V)."""
    return torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")


def _by_content(rows: Sequence[Row], nats: dict[int, float], distribution: Distribution) -> list[ContentLoss]:
    tokens: dict[int, int] = defaultdict(int)
    size: dict[int, int] = defaultdict(int)
    for sample in _samples(rows):
        begin, end = _code(sample)
        tokens[sample.content_id] += end - begin
        size[sample.content_id] += sample.code_bytes
    contents = sorted(tokens)
    summed = distribution.sum(*(nats.get(content, 0.0) for content in contents))
    return [
        ContentLoss(content, value, tokens[content], size[content])
        for content, value in zip(contents, summed, strict=True)
    ]
