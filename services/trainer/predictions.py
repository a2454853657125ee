"""What the model would write next, beside what the code goes on with: a few samples for people to look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.trainer.generation import Request, complete
from services.trainer.packing import Row
from services.trainer.samples.sample import Sample

PROMPT_TOKENS = 160  # of a prompt, its end
PREDICTED_TOKENS = 32
SECONDS = 5.0  # for all of an evaluation's predictions, which then are shorter
REQUEST = Request(PREDICTED_TOKENS, seconds=SECONDS)


@dataclass(frozen=True)
class Prediction:
    """Texts, short enough to read."""

    content_id: int
    prompt: str
    prediction: str
    truth: str


def predict(model: Any, tokenizer: Any, rows: Sequence[Row], most: int) -> list[Prediction]:
    """Greedy continuations of the first samples' prompts.

    The model keeps its mode and no generator of random numbers is used.
    """
    samples = [sample for row in rows for sample in row.samples][:most]
    cuts = [_cut(sample) for sample in samples]
    prompts = [
        list(sample.ids[max(0, cut - PROMPT_TOKENS) : cut]) for sample, cut in zip(samples, cuts, strict=True)
    ]
    written = complete(model, tokenizer, prompts, REQUEST)
    return [
        Prediction(
            content_id=sample.content_id,
            prompt=tokenizer.decode(prompt),
            prediction=completion.text,
            truth=tokenizer.decode(list(sample.ids[cut : cut + PREDICTED_TOKENS])),
        )
        for sample, cut, prompt, (completion,) in zip(samples, cuts, prompts, written, strict=True)
    ]


def _cut(sample: Sample) -> int:
    """Where the code to be predicted begins; without a prompt at the second half."""
    return max(1, sample.code_start if sample.prompt_tokens else len(sample.ids) // 2)
