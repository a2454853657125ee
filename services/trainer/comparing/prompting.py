"""A file's prompts as a suite: written after, kept by weights and prompt, judged where an answer is known."""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from services.trainer.comparing.questions import Prompt
from services.trainer.generation import Request, complete, prompt_ids
from services.trainer.suites.cache import Results
from services.trainer.suites.similarity import edit_similarity, normalised
from services.trainer.suites.suite import Metric, Score

RULES = 1  # raised when what is asked or how it is judged changes


@dataclass(frozen=True)
class Question:
    """A prompt as one model is asked it."""

    prompt: Prompt
    ids: tuple[int, ...]
    key: str  # SHA-256 of all that decides the answer, but for the weights


def questions(prompts: Sequence[Prompt], tokenizer: Any, request: Request, *, chat: bool) -> list[Question]:
    made = []
    for prompt in prompts:
        ids = tuple(prompt_ids(tokenizer, prompt.prompt, chat=chat))
        about = [RULES, "prompt", ids, prompt.answer, repr(request)]
        made.append(Question(prompt, ids, hashlib.sha256(json.dumps(about).encode()).hexdigest()))
    return made


def answered(
    model: Any,
    tokenizer: Any,
    asked: Sequence[Question],
    request: Request,
    results: Results,
    on_done: Callable[[int, int], None],
) -> tuple[int, float]:
    """Have an answer to each in the results; how many tokens were written for that, in how many seconds."""
    missing = [question for question in asked if not results.of(question.key)]
    if not missing:
        return 0, 0.0
    began = time.perf_counter()
    written = complete(model, tokenizer, [each.ids for each in missing], request, on_done=on_done)
    seconds = time.perf_counter() - began
    for question, (completion, *_) in zip(missing, written, strict=True):
        results.add(scores(question.key, question.prompt, completion.text, len(completion.ids)))
    return sum(len(completion.ids) for completion, *_ in written), seconds


def figures(found: Sequence[Score]) -> dict[str, float]:
    """Means over the prompts whose answer is known."""
    of_metric: dict[str, list[float]] = {}
    for score in found:
        if score.detail["answer"] is not None:
            of_metric.setdefault(score.metric, []).append(score.value)
    return {metric: sum(values) / len(values) for metric, values in of_metric.items()}


def scores(key: str, prompt: Prompt, written: str, tokens: int) -> list[Score]:
    """What an answer of so many tokens is worth, by each metric; `key` names the question."""
    text, answer = normalised(written), normalised(prompt.answer or "")
    detail = {"written": written, "answer": prompt.answer, "tokens": tokens}
    values: dict[Metric, float] = {
        "exact_match": float(text == answer),
        "edit_similarity": edit_similarity(text, answer),
    }
    return [
        Score(key, prompt.name, prompt.name, metric, value, detail=detail) for metric, value in values.items()
    ]
