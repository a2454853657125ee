"""What code costs a model, in bits per byte: contents that a round held out, or the prompts' answers."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from services.trainer import evaluate, model
from services.trainer.engine.compute import Compute
from services.trainer.evaluate import ContentLoss, first_samples
from services.trainer.packing import pack
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.make import make
from services.trainer.samples.sample import Sample
from services.trainer.samples.source import SampleSource
from services.trainer.suites.cache import Results
from services.trainer.suites.suite import Score

RULES = 1  # raised when what is measured changes
ROWS_AT_ONCE = 4  # on a GPU; a CPU gains nothing by it
OnRows = Callable[[int, int], None]


def of_contents(contents: Sequence[SampleSource], recipe: Recipe, tokenizer: Any) -> list[Sample]:
    """The samples that a round of the recipe is judged by."""
    made = make(contents, recipe, tokenizer, purpose="judge", round_number=0)
    return first_samples(made, recipe.held_out_pairs)


def of_texts(pairs: Sequence[tuple[Sequence[int], str]], tokenizer: Any) -> list[Sample]:
    """Each text behind the ids of its prompt; the texts alone count."""
    texts = Encoder(tokenizer).plain([text for _, text in pairs])
    made = []
    for number, ((before, text), after) in enumerate(zip(pairs, texts, strict=True)):
        ids, start = [*before, *after], len(before)
        if after and start:
            made.append(Sample(number, ids, start, start, len(ids), len(text.encode())))
    return made


def measure(
    loaded: Any, tokenizer: Any, samples: Sequence[Sample], longest: int, on_rows: OnRows | None = None
) -> list[ContentLoss]:
    """The loss of each content, or text, under the model as it stands, in rows of `longest` tokens."""
    if not samples:
        return []
    longest = max(longest, *(len(sample.ids) for sample in samples))
    found: list[ContentLoss] = evaluate.losses(
        Compute(loaded, keep_merged=False),
        pack(samples, longest),
        rows_at_once=ROWS_AT_ONCE if model.has_gpu() else 1,
        pad_id=tokenizer.pad_token_id or 0,
        longest=longest,
        on_rows=on_rows,
    )
    return found


def kept(
    loaded: Any, tokenizer: Any, samples: Sequence[Sample], longest: int, results: Results, on_rows: OnRows
) -> list[ContentLoss]:
    """The same, of what these results do not hold yet; they hold it afterwards."""
    keys = _keys(samples)
    missing = [sample for sample in samples if not results.of(keys[sample.content_id])]
    results.add(
        _score(keys[each.content_id], each) for each in measure(loaded, tokenizer, missing, longest, on_rows)
    )
    return [_loss(number, score) for number, key in keys.items() for score in results.of(key)]


def _keys(samples: Sequence[Sample]) -> dict[int, str]:
    """By content: SHA-256 of the samples it is judged by."""
    about: dict[int, list[Any]] = {}
    for sample in samples:
        about.setdefault(sample.content_id, [RULES, "loss"]).append([list(sample.ids), list(sample.counted)])
    return {number: hashlib.sha256(json.dumps(each).encode()).hexdigest() for number, each in about.items()}


def _score(key: str, loss: ContentLoss) -> Score:
    name, detail = str(loss.content_id), {"tokens": loss.tokens, "correct": loss.correct}
    return Score(key, name, name, "nats", loss.nats, float(loss.bytes), detail)


def _loss(number: int, score: Score) -> ContentLoss:
    return ContentLoss(
        number, score.value, score.detail["tokens"], int(score.weight), score.detail["correct"]
    )
