"""The measurement: one adapter run in several ways, on the same prompts and texts, beside the judged way.

Teacher-forced: every way computes the log probability of each token of the fixed texts, so that a difference
is seen even where the most likely token stays the same.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from services.trainer.generation import Request, complete
from services.trainer.parity.record import Leg

LOGITS_TOKENS = 512  # of a text at most: their logits lie in memory at once


@dataclass(frozen=True)
class Asked:
    """What every way is asked: token ids, as servers encode a text."""

    prompts: tuple[tuple[int, ...], ...]
    texts: tuple[tuple[int, ...], ...]  # two tokens at least
    text_bytes: int  # of the texts as they are cut


@dataclass(frozen=True)
class Run:
    """What one way answered."""

    written: tuple[tuple[int, ...], ...]  # greedily, after each prompt
    log_probs: tuple[float, ...]  # of each token of the texts but their first, in nats


def encode(tokenizer: Any, prompts: Sequence[str], texts: Sequence[str]) -> Asked:
    """As a server encodes what it is sent, with whatever the tokenizer puts before it."""
    ids = [tuple(tokenizer(text)["input_ids"])[:LOGITS_TOKENS] for text in texts]
    kept = [each for each in ids if len(each) > 1]
    size = sum(len(tokenizer.decode(each[1:]).encode()) for each in kept)
    return Asked(tuple(tuple(tokenizer(prompt)["input_ids"]) for prompt in prompts), tuple(kept), size)


@torch.no_grad()
def run(
    model: Any, tokenizer: Any, asked: Asked, tokens: int, on_done: Callable[[int], None] = lambda _: None
) -> Run:
    """What a loaded model answers: `tokens` after every prompt at most, and the texts' log probabilities.

    One prompt at a time: rows of a batch round differently. `on_done` hears how many are answered.
    """
    written = []
    for number, prompt in enumerate(asked.prompts, 1):
        ((completion,),) = complete(model, tokenizer, [prompt], Request(tokens))
        written.append(tuple(completion.ids))
        on_done(number)
    log_probs: list[float] = []
    for text in asked.texts:
        ids = torch.tensor([text], device=model.device)  # (1, T)
        logits = model(input_ids=ids).logits[0, :-1].float()  # (T - 1, V)
        found = logits.log_softmax(-1).gather(1, ids[0, 1:, None])  # (T - 1, 1)
        log_probs += found.flatten().double().tolist()
    return Run(tuple(written), tuple(log_probs))


def compare(way: str, reference: Run, other: Run, text_bytes: int) -> Leg:
    """The other way beside the judged one."""
    equal = [_equal(a, b) for a, b in zip(reference.written, other.written, strict=True)]
    differing = [tokens for tokens in equal if tokens is not None]
    gaps = [abs(a - b) for a, b in zip(reference.log_probs, other.log_probs, strict=True)]
    nats = math.fsum(reference.log_probs) - math.fsum(other.log_probs)  # of the other less of the judged
    return Leg(
        way=way,
        prompts=len(equal),
        same=equal.count(None),
        first_difference=min(differing, default=None),
        max_log_prob_difference=max(gaps, default=None),
        bits_per_byte_difference=nats / math.log(2) / text_bytes if text_bytes else None,
    )


def compare_written(way: str, reference: Sequence[Sequence[int]], written: Sequence[Sequence[int]]) -> Leg:
    """Answers alone, of which nothing else is known."""
    equal = [_equal(a[: len(b)], b) for a, b in zip(reference, written, strict=True)]
    differing = [tokens for tokens in equal if tokens is not None]
    return Leg(way, len(equal), equal.count(None), min(differing, default=None), None, None)


def compare_texts(
    way: str, tokenizer: Any, reference: Sequence[Sequence[int]], answers: Sequence[str]
) -> Leg:
    """Answers of a server, which come as text; a space at the beginning is the tokenizer's affair."""
    differing = []
    for ids, found in zip(reference, answers, strict=True):
        if _text(tokenizer, ids) != found.lstrip(" "):
            equal = (n for n in range(len(ids), 0, -1) if _begins(found, _text(tokenizer, ids[:n])))
            differing.append(next(equal, 0))
    return Leg(way, len(answers), len(answers) - len(differing), min(differing, default=None), None, None)


def _text(tokenizer: Any, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(ids, skip_special_tokens=True)).lstrip(" ")


def _begins(found: str, text: str) -> bool:
    return found.lstrip(" ").startswith(text.rstrip("\ufffd"))  # half a character is no difference


def _equal(a: Sequence[int], b: Sequence[int]) -> int | None:
    """Tokens that are equal before the first that is not; None when all are."""
    if list(a) == list(b):
        return None
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
