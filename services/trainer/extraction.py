"""Whether a model writes out a secret when it is given what stood before it.

Extractable as in Carlini et al., "Quantifying Memorization Across Neural Language Models" (ICLR 2023,
section 2): after the true 50 tokens before it, the likeliest continuation is the secret; and in samples as
in Hayes et al., "Measuring memorization through probabilistic discoverable extraction" (NAACL 2025).
Exposure as in Carlini et al., "The Secret Sharer" (USENIX Security 2019): see `exposure`.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from services.trainer import evaluate
from services.trainer.engine.compute import Compute
from services.trainer.engine.distributed import ALONE, Distribution
from services.trainer.evaluate import ContentLoss
from services.trainer.exposure import exposure_bits
from services.trainer.generation import Request, complete
from services.trainer.packing import pack
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.sample import Sample

PREFIX_TOKENS = 50
PREFIX_CHARACTERS = 4000  # of a prefix, its end: more than its last tokens ever are
SAMPLES = 1000  # drawn after the prefix, at temperature 1
SAMPLED_BITS = math.log2(SAMPLES / math.log(2))  # of a secret that is as likely as not in one of them
SLACK = 4  # tokens written beyond the secret's own: a model may spell it in smaller ones
ROW_TOKENS = 2048  # of texts packed together
ROWS_AT_ONCE = 4  # on a GPU


@dataclass(frozen=True)
class Probe:
    """A secret, and the text that stood before it where the model may have seen it.

    others: random secrets of the same format that nobody has seen, for exposure; the more the finer.
    """

    name: str
    prefix: str
    secret: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Extraction:
    """What a model gave up of one secret."""

    name: str
    extracted: bool  # it writes the secret out, greedily
    matched_tokens: int  # of the secret's, those that are the likeliest after the true ones before them
    tokens: int  # that the secret has
    exposure_bits: float | None  # None: no other secrets to compare with
    bits: float = math.inf  # that it costs the model: a sample has it with probability 2^-bits

    @property
    def sampled(self) -> bool:
        """Whether it would be in one of 1,000 samples, as likely as not."""
        return self.bits <= SAMPLED_BITS


@dataclass(frozen=True)
class _Asked:
    """A text in two: the tokens that the model is given, and those that it would have to write."""

    prompt: list[int]
    target: list[int]


def extract(
    model: Any,
    tokenizer: Any,
    probes: Sequence[Probe],
    *,
    compute: Compute | None = None,
    distribution: Distribution = ALONE,
    on_done: Callable[[int, int], None] | None = None,
) -> list[Extraction]:
    """What the model gives up of each secret, in order; in every process of a round the same.

    model: as `model.load_base` or `model.for_training` gives it, with adapters or without; it keeps its
    mode. compute: the round's, if it has one; a model with adapters bears one alone. A secret counts as
    extracted when each of its tokens is the likeliest after the true ones before it, which is what greedy
    decoding goes by, or when it stands in what is written greedily, in whatever tokens; a model split over
    devices writes nothing, so there the first alone decides. on_done hears how many of all passes are done;
    what it raises goes through.
    """
    if not probes:
        return []
    encoder = Encoder(tokenizer)
    asked = [_asked(encoder, probe.prefix, probe.secret) for probe in probes]
    others = [[_asked(encoder, probe.prefix, other) for other in probe.others] for probe in probes]
    written = [""] * len(probes)
    if not distribution.splits:
        written = distribution.agree(lambda: _written(model, tokenizer, asked))
    everything = [*asked, *(each for group in others for each in group)]
    losses = _losses(compute or Compute(model), tokenizer, everything, distribution, on_done)
    rest = iter(losses[len(asked) :])
    found = []
    for probe, text, loss, group in zip(probes, written, losses, others, strict=False):
        nats = [next(rest).nats for _ in group]
        found.append(
            Extraction(
                name=probe.name,
                extracted=loss.correct == loss.tokens or probe.secret in text,
                matched_tokens=loss.correct,
                tokens=loss.tokens,
                exposure_bits=exposure_bits(loss.nats, nats),
                bits=loss.nats / math.log(2),
            )
        )
    return found


def _asked(encoder: Encoder, prefix: str, secret: str) -> _Asked:
    """The tokens of both together, cut before the one that the secret begins in, as it was trained on."""
    if not secret:
        raise ValueError("a secret without a character can always be written: expected one at least")
    before = prefix[-PREFIX_CHARACTERS:]
    ids, starts = encoder.located([before + secret])[0]
    cut = max(0, bisect_right(starts, len(before.encode())) - 1)
    prompt = [*encoder.begin, *ids[max(0, cut - PREFIX_TOKENS) : cut]]
    return _Asked(prompt or [encoder.end], list(ids[cut:]))


def _written(model: Any, tokenizer: Any, asked: Sequence[_Asked]) -> list[str]:
    request = Request(max_new_tokens=SLACK + max(len(each.target) for each in asked))
    answers = complete(model, tokenizer, [each.prompt for each in asked], request)
    return [answer.text for (answer,) in answers]


def _losses(
    compute: Compute,
    tokenizer: Any,
    asked: Sequence[_Asked],
    distribution: Distribution,
    on_done: Callable[[int, int], None] | None,
) -> list[ContentLoss]:
    """Of each target after its prompt: its nats, and how many of its tokens are the likeliest."""
    samples = []
    for number, each in enumerate(asked):
        start, ids = len(each.prompt), [*each.prompt, *each.target]
        samples.append(Sample(number, ids, start, start, len(ids), len(each.target)))
    longest = max(ROW_TOKENS, *(len(sample.ids) for sample in samples))
    found: list[ContentLoss] = evaluate.losses(
        compute,
        pack(samples, longest),
        rows_at_once=ROWS_AT_ONCE if next(compute.model.parameters()).is_cuda else 1,
        pad_id=tokenizer.pad_token_id or 0,
        longest=longest,
        distribution=distribution,
        on_rows=on_done,
    )
    return found
