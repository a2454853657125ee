"""What merging costs: the adapter on its base as trained, on the full base, and merged, measured alike.

The first is what the gate judged. From it to the second lies what quantising the base did, from the second to
the third the rounding of merged weights to the base's type.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from services.core.models import Json
from services.core.settings import Settings
from services.trainer import evaluate
from services.trainer.answering import loading
from services.trainer.comparing import bits
from services.trainer.generation import Request, complete
from services.trainer.samples.sample import Sample
from services.trainer.samples.source import SampleSource
from services.trainer.subjects import Subject
from services.trainer.suites import completion

PROMPTS = 16  # answered greedily
WRITTEN = 32  # tokens after each
CONTEXT = 256  # of a prompt, its end
TRAINED, FULL, MERGED = "adapter on the base as trained", "adapter on the full base", "merged"
OnDone = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Questions:
    """What each arm is measured by."""

    samples: tuple[Sample, ...]
    prompts: tuple[tuple[int, ...], ...]
    said: str  # of what they are


@dataclass(frozen=True)
class Arm:
    name: str
    bits_per_byte: float
    written: tuple[tuple[int, ...], ...]  # ids after each prompt


@dataclass(frozen=True)
class Agreement:
    """How far two arms' greedy answers are the same."""

    of: str
    against: str
    same: int  # answers alike to the last token
    answers: int
    tokens: float  # share of tokens before the first that differs


def questions(contents: Sequence[SampleSource], subject: Subject, tokenizer: Any) -> Questions:
    """Of held-out contents; of the canary's fixed texts where there are none."""
    recipe = subject.recipe.model_copy(update={"completion_items": PROMPTS})
    items = completion.items(contents, recipe, tokenizer)
    samples = bits.of_contents(contents, recipe, tokenizer)
    if items and samples:
        files = len({sample.content_id for sample in samples})
        prompts = tuple(tuple(item.prompt[-CONTEXT:]) for item in items)
        return Questions(tuple(samples), prompts, f"{files} held-out files, {len(items)} completions of them")
    texts, beginnings = fixed()
    begin = list(tokenizer.encode("")) or [tokenizer.eos_token_id]
    prompts = tuple(tuple(tokenizer.encode(text, add_special_tokens=False)) for text in beginnings)
    fixed_samples = bits.of_texts([(begin, text) for text in texts], tokenizer)
    said = f"{len(texts)} fixed texts and {len(prompts)} prompts: no held-out code of its round is at hand"
    return Questions(tuple(fixed_samples), prompts, said)


def fixed() -> tuple[list[str], list[str]]:
    """The canary's texts and prompts."""
    import json

    from services.trainer.canary_suite import SUITE

    found = json.loads(SUITE.read_text(encoding="utf-8"))
    return found["texts"], found["prompts"]


def arms(subject: Subject, merged: Path, settings: Settings, asked: Questions, on_done: OnDone) -> list[Arm]:
    """One after the other, so that one model is in memory at a time; without the first where the base was
    not quantised in training.
    """
    whole = replace(subject, kind="model", folder=merged)
    ways = [(TRAINED, subject, False)] if subject.is_quantised else []
    ways += [(FULL, subject, True), (MERGED, whole, True)]
    found = []
    for number, (name, each, unquantised) in enumerate(ways):
        on_done(number, len(ways), "measured")
        loaded, tokenizer = loading.load(each, settings, unquantised=unquantised)
        found.append(_arm(name, loaded, tokenizer, asked, subject.recipe.max_length))
        del loaded
    on_done(len(ways), len(ways), "measured")
    return found


def agreements(found: Sequence[Arm]) -> list[Agreement]:
    """Each arm against the first, and the merged model against the adapter on the full base."""
    pairs = [(arm, found[0]) for arm in found[1:]]
    if len(found) > 2:
        pairs.append((found[-1], found[-2]))
    return [agreement(arm, against) for arm, against in pairs]


def agreement(arm: Arm, against: Arm) -> Agreement:
    both = list(zip(arm.written, against.written, strict=True))
    tokens = sum(max(len(a), len(b)) for a, b in both)
    alike = sum(_common(a, b) for a, b in both)
    same = sum(a == b for a, b in both)
    return Agreement(arm.name, against.name, same, len(both), alike / tokens if tokens else 1.0)


def as_json(found: Sequence[Arm], asked: Questions) -> Json:
    return {
        "measured_by": asked.said,
        "arms": [{"name": arm.name, "bits_per_byte": arm.bits_per_byte} for arm in found],
        "agreements": [asdict(each) for each in agreements(found)],
    }


def _arm(name: str, loaded: Any, tokenizer: Any, asked: Questions, longest: int) -> Arm:
    written = complete(loaded, tokenizer, asked.prompts, Request(max_new_tokens=WRITTEN))
    losses = bits.measure(loaded, tokenizer, asked.samples, longest)
    return Arm(name, evaluate.bits_per_byte(losses), tuple(each.ids for (each,) in written))


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Tokens before the first that differs."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
