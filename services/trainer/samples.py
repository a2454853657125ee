"""Samples: what the model sees, made from contents by the recipe. Here: completion pairs.

The seed's format: an instruction and the first 30-40 % of the code (at least 5 lines) in the base
model's chat template; the rest is the completion. The loss is on the completion only. A content too
long for one pair is cut into several, at blank lines where there are any; nothing is dropped.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from services.core.errors import ConfigurationError

INSTRUCTIONS = (
    "Complete the following {language} code:",
    "Implement the {language} function:",
    "Write {language} code to solve this:",
    "Generate {language} code for:",
    "Create a {language} implementation:",
    "Develop {language} code that:",
)
SPOKEN = {  # how a language is called in a sentence, where it is not just capitalised
    "javascript": "JavaScript",
    "typescript": "TypeScript",
    "php": "PHP",
    "sql": "SQL",
    "html": "HTML",
    "css": "CSS",
    "json": "JSON",
    "yaml": "YAML",
    "toml": "TOML",
    "xml": "XML",
}
FENCES = {"c++": "cpp", "c#": "csharp", "shell": "bash"}  # a fence's name, where it is another
CONTEXT_SHARE = (0.30, 0.40)
MIN_CONTEXT_LINES = 5
MIN_LINES = 2 * MIN_CONTEXT_LINES  # a shorter piece is not cut again
IGNORED = -100  # label of a token without loss, as in torch's cross entropy


class Tokenizer(Protocol):
    """What is used of transformers' tokenizers."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...
    def apply_chat_template(self, conversation: Any, **options: Any) -> Any: ...


@dataclass(frozen=True)
class Sample:
    """One document for the model: token ids, which of them are learned, which of those are code."""

    content_id: int
    ids: tuple[int, ...]
    prompt_tokens: int  # loss starts after these
    code_start: int  # the completion's code, without fence and end of turn: what bits per byte counts
    code_end: int
    code_bytes: int
    truncated_tokens: int = 0

    @property
    def labels(self) -> list[int]:
        return [IGNORED] * self.prompt_tokens + list(self.ids[self.prompt_tokens :])


def completion_pairs(
    content_id: int, text: str, language: str, tokenizer: Tokenizer, max_length: int
) -> Iterator[Sample]:
    """The completion pairs of one content, in order, each at most `max_length` tokens.

    Which instruction and how much context is decided by a hash of the text: the same content gives
    the same pairs in every round.
    """
    pieces = [text.splitlines()]
    while pieces:
        lines = pieces.pop()
        if len(lines) <= MIN_CONTEXT_LINES:
            continue  # nothing left to complete after the context
        sample = _pair(content_id, lines, language, tokenizer, max_length)
        if sample.truncated_tokens and len(lines) >= 2 * MIN_LINES:
            middle = _middle(lines)
            pieces += [lines[middle:], lines[:middle]]
        elif sample.code_end > sample.code_start:
            yield sample


def _pair(content_id: int, lines: list[str], language: str, tokenizer: Tokenizer, max_length: int) -> Sample:
    digest = hashlib.blake2b("\n".join(lines).encode(), digest_size=8).digest()
    instruction = INSTRUCTIONS[digest[0] % len(INSTRUCTIONS)].format(
        language=SPOKEN.get(language, language.capitalize())
    )
    low, high = CONTEXT_SHARE
    share = low + (high - low) * int.from_bytes(digest[1:5], "big") / 2**32
    cut = max(MIN_CONTEXT_LINES, round(share * len(lines)))
    context, code = "\n".join(lines[:cut]), "\n".join(lines[cut:])
    fence = FENCES.get(language, language)

    question = {"role": "user", "content": f"{instruction}\n\n```{fence}\n{context}\n```"}
    opening, closing = f"```{fence}\n", "\n```"
    answer = {"role": "assistant", "content": opening + code + closing}
    prompt = tokenizer.apply_chat_template([question], tokenize=False, add_generation_prompt=True)
    whole = tokenizer.apply_chat_template([question, answer], tokenize=False)
    if not whole.startswith(prompt + opening):
        raise ConfigurationError(
            "the tokenizer's chat template does not continue its own prompt with the assistant's text:"
            " completion pairs need a model whose template does (an instruct model)"
        )
    end_of_turn = whole[len(prompt + opening + code + closing) :]
    head, fence_ids, body, tail = (
        tokenizer.encode(part, add_special_tokens=False)
        for part in (prompt, opening, code, closing + end_of_turn)
    )
    start = len(head) + len(fence_ids)
    ids = [*head, *fence_ids, *body, *tail]
    end = min(start + len(body), max_length)
    kept_bytes = len(code.encode())
    if end < start + len(body):  # cut inside the code: count the bytes of what is left of it
        kept_bytes = max(1, kept_bytes * max(0, end - start) // len(body))
    return Sample(
        content_id=content_id,
        ids=tuple(ids[:max_length]),
        prompt_tokens=len(head),
        code_start=min(start, max_length),
        code_end=end,
        code_bytes=kept_bytes,
        truncated_tokens=max(0, len(ids) - max_length),
    )


def _middle(lines: list[str]) -> int:
    """Where to cut in two: the blank line nearest the middle that leaves both halves long enough."""
    half = len(lines) // 2
    allowed = range(MIN_LINES, len(lines) - MIN_LINES + 1)
    blank = [index + 1 for index in range(len(lines)) if not lines[index].strip() and index + 1 in allowed]
    return min(blank, key=lambda index: abs(index - half), default=half)
