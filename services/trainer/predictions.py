"""What the model would write next, beside what the code goes on with: a few samples for people to look at."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from services.trainer.packing import Row
from services.trainer.samples.sample import Sample

PROMPT_TOKENS = 160  # of a prompt, its end
PREDICTED_TOKENS = 32
SECONDS = 5.0  # for all of an evaluation's predictions: on a CPU each takes about one


@dataclass(frozen=True)
class Prediction:
    """Texts, short enough to read."""

    content_id: int
    prompt: str
    prediction: str
    truth: str


@torch.no_grad()
def predict(model: Any, tokenizer: Any, rows: Sequence[Row], most: int) -> list[Prediction]:
    """Greedy continuations of the first samples' prompts, as many as there is time for.

    The model keeps its mode and no generator of random numbers is used.
    """
    samples = [sample for row in rows for sample in row.samples][:most]
    was_training = model.training
    model.eval()
    began, found = time.monotonic(), []
    try:
        for sample in samples:
            if time.monotonic() - began > SECONDS:
                break
            found.append(_one(model, tokenizer, sample))
    finally:
        model.train(was_training)
    return found


def _one(model: Any, tokenizer: Any, sample: Sample) -> Prediction:
    ids = list(sample.ids)
    cut = sample.code_start if sample.prompt_tokens else len(ids) // 2  # without a prompt: the second half
    prompt = ids[max(0, cut - PROMPT_TOKENS) : max(1, cut)]
    asked = torch.tensor([prompt], device=next(model.parameters()).device)
    written = model.generate(
        input_ids=asked,
        attention_mask=torch.ones_like(asked),
        max_new_tokens=PREDICTED_TOKENS,
        do_sample=False,
        temperature=None,
        top_p=None,
        top_k=None,
        use_cache=True,
        pad_token_id=tokenizer.pad_token_id,
    )[0, len(prompt) :]
    return Prediction(
        content_id=sample.content_id,
        prompt=tokenizer.decode(prompt),
        prediction=tokenizer.decode(written.tolist()),
        truth=tokenizer.decode(ids[cut : cut + PREDICTED_TOKENS]),
    )
