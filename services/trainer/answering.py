"""A model that answers: base, adapter or whole model, loaded afresh, and what it writes after prompts.

`python -m services.trainer.answering` reads one question as JSON on standard input and writes the answers as
JSON to standard output; what is written so far goes to standard error as lines of `text JSON`.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel

from services.core.errors import ConfigurationError
from services.core.models import Json
from services.core.settings import Settings, from_environment
from services.trainer import inquiry, model, subjects
from services.trainer.generation import Completion, Request, asks_in_template, complete, prompt_ids
from services.trainer.reinforcement import asking
from services.trainer.samples import fim
from services.trainer.samples.encoder import Encoder
from services.trainer.subjects import Subject

TOKENIZER = "tokenizer_config.json"
STREAMED_TOKENS, STREAMED_TOKENS_ON_CPU = 4, 1  # between two looks at what is written


def load(subject: Subject | Path | str, settings: Settings, *, unquantised: bool = False) -> tuple[Any, Any]:
    """The model, in evaluation mode, and its tokenizer; the base as in training unless `unquantised`.

    Of a team the role that answers, alone; `reinforcement.asking` has all of it at work.

    subject: resolved, or a name or folder as `subjects.resolve` takes it. Raises as that does,
    ModelNotFoundError for a base model that is not to be had, ConfigurationError for an adapter of another
    architecture.
    """
    found = subject if isinstance(subject, Subject) else subjects.resolve(str(subject), settings)
    base, tokenizer = load_base(found, settings, unquantised=unquantised)
    return attach(base, found), tokenizer


def load_base(subject: Subject, settings: Settings, *, unquantised: bool = False) -> tuple[Any, Any]:
    """The model that the subject's adapter goes onto, or itself where it is whole, and the tokenizer."""
    recipe = subject.recipe
    if subject.kind == "model":
        recipe = recipe.model_copy(update={"method": "full"})
    elif unquantised:
        recipe = recipe.model_copy(update={"method": "lora"})
    loaded = model.load_base(recipe, source_of(subject, settings), _token(settings)).eval()
    return loaded, load_tokenizer(subject, settings)


def load_tokenizer(subject: Subject, settings: Settings) -> Any:
    """The one that was published with it; a stranger's adapter goes with its base model's."""
    has_own = subject.release is not None and (subject.release / TOKENIZER).is_file()
    if has_own and (subject.manifest is not None or subject.kind == "model"):
        return model.load_tokenizer(model.Source(str(subject.release), None), _token(settings))
    return model.load_tokenizer(source_of(subject, settings), _token(settings))


def source_of(subject: Subject, settings: Settings) -> model.Source:
    """Where the weights are that no adapter is needed for."""
    if subject.kind == "model":
        return model.Source(str(subject.folder), None)
    return model.locate(subject.recipe.base_model, subject.revision, settings.cache_dir)


def attach(base: Any, subject: Subject) -> Any:
    """The base with the subject's adapter, frozen; the base itself where there is none to attach."""
    subject = alone(subject)
    if subject.kind != "adapter":
        return base
    try:
        return PeftModel.from_pretrained(base, str(subject.folder), torch_device=str(base.device)).eval()
    except (RuntimeError, ValueError, KeyError, TypeError) as exc:
        if isinstance(exc, torch.OutOfMemoryError):
            raise
        named = subjects.described_base(subject)
        of = f" (it says it is for {named})" if named else ""
        raise ConfigurationError(
            f"the adapter in {subject.folder} does not fit base_model {subject.recipe.base_model}{of}: {exc}"
        ) from exc


def alone(subject: Subject) -> Subject:
    """What answers by itself: of a team the last role's adapter."""
    if subject.kind != "team":
        return subject
    return subjects.of_role(subject, subject.profiles[-1].role)


@dataclass(frozen=True)
class Answer:
    """One completion of one prompt."""

    text: str
    tokens: int
    finished: bool  # False when it ran out of tokens


@dataclass(frozen=True)
class Answers:
    """Everything that was written, and how fast."""

    completions: list[list[Answer]]  # of each prompt
    prompt_tokens: list[int]
    seconds: float  # of writing, loading not counted

    @property
    def tokens_per_second(self) -> float:
        written = sum(each.tokens for answers in self.completions for each in answers)
        return written / max(self.seconds, 1e-9)


def answer(
    loaded: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    request: Request,
    on_text: Callable[[str], None] | None = None,
) -> Answers:
    """What the model writes after prompts of token ids.

    on_text: of one prompt and one completion, hears each piece of its text as it is written.
    """
    told = Told(request, on_text) if on_text is not None else None
    on_cpu = loaded.device.type == "cpu"
    began = time.perf_counter()
    written = complete(
        loaded,
        tokenizer,
        prompts,
        request,
        on_text=None if told is None else lambda _place, text: told.so_far(text),
        turn_tokens=None if told is None else STREAMED_TOKENS_ON_CPU if on_cpu else STREAMED_TOKENS,
    )
    seconds = time.perf_counter() - began
    if told is not None:
        told.all(written[0][0].text)
    made = [[_answer(each) for each in completions] for completions in written]
    return Answers(made, [len(prompt) for prompt in prompts], seconds)


class Told:
    """A text as it grows, in pieces that are final: nothing that a stop string or half a character begins."""

    def __init__(self, request: Request, tell: Callable[[str], None]) -> None:
        self._request, self._tell = request, tell
        self._kept_back = max((len(stop) - 1 for stop in request.stop), default=0)  # characters
        self._told = 0  # characters

    def so_far(self, text: str) -> None:
        whole = text[: self._request.ending(text)].rstrip("\ufffd")
        self.all(whole[: len(whole) - self._kept_back])

    def all(self, text: str) -> None:
        if len(text) > self._told:
            self._tell(text[self._told :])
            self._told = len(text)


def middle_ids(tokenizer: Any, prefix: str, suffix: str, base_model: str) -> tuple[list[int], str | None]:
    """The ids that ask for what belongs between two texts, and what ends it beside the end of a document.

    Raises ConfigurationError for a tokenizer without tokens for it.
    """
    encoder = Encoder(tokenizer)
    try:
        special = fim.tokens(encoder, base_model)
    except ConfigurationError as exc:
        raise ConfigurationError(
            f"a suffix needs fill-in-the-middle tokens, and the tokenizer of {base_model} has none: ask with"
            " a prompt, or take a base model that was trained with them (Qwen2.5-Coder, StarCoder2, …)"
        ) from exc
    (ids,) = fim.encode([fim.Split(prefix, "", suffix)], [False], special, encoder)
    end = None if special.end == encoder.end else str(tokenizer.decode([special.end]))
    return list(ids)[:-1], end


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


def main() -> int:
    """Exit status 1 with a line on standard error when it cannot be done."""
    settings = from_environment()
    return inquiry.answer(lambda sent: answered(sent, settings, _say if sent["stream"] else None))


def _say(text: str) -> None:
    sys.stderr.write(f"text {json.dumps(text)}\n")
    sys.stderr.flush()


def _answer(completion: Completion) -> Answer:
    return Answer(completion.text, len(completion.ids), completion.finished)


def _token(settings: Settings) -> str | None:
    return settings.hf_token.get_secret_value() if settings.hf_token else None


if __name__ == "__main__":
    sys.exit(main())
