"""What a model writes after prompts, and how fast; each piece as it is written."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from services.core.errors import ConfigurationError
from services.trainer.generation import Completion, Request, complete
from services.trainer.samples import fim
from services.trainer.samples.encoder import Encoder

STREAMED_TOKENS, STREAMED_TOKENS_ON_CPU = 4, 1  # between two looks at what is written


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


def _answer(completion: Completion) -> Answer:
    return Answer(completion.text, len(completion.ids), completion.finished)
