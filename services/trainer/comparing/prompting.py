"""A file's prompts as a suite: written after, kept by weights and prompt, judged where an answer is known."""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from services.trainer.comparing.questions import Prompt
from services.trainer.generation import Completion, Request, complete, prompt_ids
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
        results.add(_scores(question, completion))
    return sum(len(completion.ids) for completion, *_ in written), seconds


def figures(scores: Sequence[Score]) -> dict[str, float]:
    """Means over the prompts whose answer is known."""
    found: dict[str, list[float]] = {}
    for score in scores:
        if score.detail["answer"] is not None:
            found.setdefault(score.metric, []).append(score.value)
    return {metric: sum(values) / len(values) for metric, values in found.items()}


def _scores(question: Question, completion: Completion) -> list[Score]:
    prompt = question.prompt
    text, answer = normalised(completion.text), normalised(prompt.answer or "")
    detail = {"written": completion.text, "answer": prompt.answer, "tokens": len(completion.ids)}
    values: dict[Metric, float] = {
        "exact_match": float(text == answer),
        "edit_similarity": edit_similarity(text, answer),
    }
    return [
        Score(question.key, prompt.name, prompt.name, metric, value, detail=detail)
        for metric, value in values.items()
    ]
