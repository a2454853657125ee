"""One question and its answers, as JSON."""

import time
from collections.abc import Callable
from dataclasses import asdict, replace

from services.core.errors import ConfigurationError
from services.core.models import Json
from services.core.settings import Settings
from services.trainer import subjects
from services.trainer.answering.loading import load, load_base
from services.trainer.answering.writing import Answer, answer, middle_ids
from services.trainer.generation import Request, asks_in_template, prompt_ids
from services.trainer.reinforcement import asking
from services.trainer.subjects import Subject


def answered(sent: Json, settings: Settings, on_text: Callable[[str], None] | None = None) -> Json:
    """The answers to one question, as JSON.

    sent: `subject`, `request`, and either `prompt` with `chat` (None: as the recipe asks) or `prefix` and
    `suffix`.
    """
    subject = subjects.resolve(sent["subject"], settings)
    if subject.kind == "team":
        return _of_team(sent, subject, settings, on_text)
    began = time.perf_counter()
    loaded, tokenizer = load(subject, settings)
    loading = time.perf_counter() - began
    request = _request(sent)
    chat = False
    if sent.get("suffix") is not None:
        ids, end = middle_ids(tokenizer, sent["prefix"], sent["suffix"], subject.recipe.base_model)
        request = request if end is None else replace(request, stop=(*request.stop, end))
    else:
        chat = sent["chat"]
        if chat is None:
            chat = asks_in_template(subject.recipe.objective, tokenizer)
        ids = prompt_ids(tokenizer, sent["prompt"], chat=chat)
    if not ids:
        raise ConfigurationError("the prompt is empty: give some code or a question to go on from")
    found = answer(loaded, tokenizer, [ids], request, on_text if request.n == 1 else None)
    return {
        "subject": subject.name,
        "adapter": None if subject.folder is None else str(subject.folder),
        "base_model": subject.recipe.base_model,
        "chat": chat,
        "prompt_tokens": found.prompt_tokens[0],
        "completions": [asdict(each) for each in found.completions[0]],
        "loading_seconds": round(loading, 3),
        "seconds": round(found.seconds, 3),
        "tokens_per_second": round(found.tokens_per_second, 2),
    }


def _of_team(sent: Json, subject: Subject, settings: Settings, on_text: Callable[[str], None] | None) -> Json:
    """As `answered`; beside each answer what every agent `said`. Agents are told one after another."""
    if sent.get("suffix") is not None or sent["chat"] is not None:
        raise ConfigurationError(
            f"{subject.name} is a team, whose agents are asked as in training: give a prompt alone, without"
            " --prefix, --suffix, --chat or --raw; or name one role,"
            f" {subject.name}/{subject.profiles[-1].role}"
        )
    request = _request(sent)
    began = time.perf_counter()
    base, tokenizer = load_base(subject, settings)
    team = asking.load(base, tokenizer, subject)
    loading, began = time.perf_counter() - began, time.perf_counter()

    def on_said(said: asking.Said) -> None:
        if on_text is not None and request.n == 1:
            on_text(f"── {said.role} ──\n{said.text.strip()}\n")

    (answers,) = asking.ask(team, subject, [asking.as_task(sent["prompt"])], request, on_said=on_said)
    seconds = time.perf_counter() - began
    tokens = sum(said.tokens for answer in answers for said in answer)
    return {
        "subject": subject.name,
        "adapter": str(subject.folder),
        "base_model": subject.recipe.base_model,
        "chat": bool(getattr(tokenizer, "chat_template", None)),
        "prompt_tokens": len(tokenizer.encode(sent["prompt"], add_special_tokens=False)),
        "completions": [
            {
                **asdict(Answer(answer[-1].text, sum(said.tokens for said in answer), answer[-1].finished)),
                "said": [asdict(said) for said in answer],
            }
            for answer in answers
        ],
        "loading_seconds": round(loading, 3),
        "seconds": round(seconds, 3),
        "tokens_per_second": round(tokens / max(seconds, 1e-9), 2),
    }


def _request(sent: Json) -> Request:
    return Request(**{**sent["request"], "stop": tuple(sent["request"]["stop"])})
