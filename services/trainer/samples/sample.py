"""A sample: one document for the model, made from contents by the recipe."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from services.trainer.samples.source import Spans

IGNORED = -100  # label of a token without loss, as in torch's cross entropy


class Tokenizer(Protocol):
    """What is used of transformers' tokenizers."""

    name_or_path: str
    eos_token_id: int | None
    bos_token_id: int | None
    chat_template: str | None
    added_tokens_decoder: dict[int, Any]

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...
    def convert_ids_to_tokens(self, ids: Any) -> Any: ...
    def apply_chat_template(self, conversation: Any, **options: Any) -> Any: ...


class Extract(NamedTuple):
    """What a sample holds of one content, for the receipt of what was trained on."""

    content_id: int
    first_line: int  # of the content, from 1; both included
    last_line: int  # one before the first: nothing of the content but its heading
    tokens: int  # of the sample that are counted to it, with what frames them


@dataclass(frozen=True, slots=True)
class Sample:
    """One document for the model: token ids, which of them are learned, which of those are code.

    The makers give ids as array('i'): 4 bytes a token, where Python's own integers take 36.
    """

    content_id: int
    ids: Sequence[int]
    prompt_tokens: int  # loss starts after these
    code_start: int  # the code that bits per byte counts: without fence, separators and end of turn
    code_end: int
    code_bytes: int  # of what is judged of it
    kind: str = "completion"  # completion, file, repository, or a kind of unit; then fim-psm, renamed, …

    judged: Spans | None = None  # the tokens of the code that count in evaluation; None: all of them
    extracts: tuple[Extract, ...] = ()  # what it is made of; together their tokens are all of its

    @property
    def counted(self) -> Spans:
        """Ranges of tokens that evaluation counts; a document's first has nothing before it to go by."""
        spans = ((self.code_start, self.code_end),) if self.judged is None else self.judged
        return tuple((max(1, start), max(1, end)) for start, end in spans)

    @property
    def labels(self) -> list[int]:
        return [IGNORED] * self.prompt_tokens + list(self.ids[self.prompt_tokens :])


def extract(content_id: int, first_line: int, text: str, tokens: int) -> tuple[Extract]:
    """Of a sample that is a single stretch of one content, `text` being that stretch."""
    last_line = first_line + text.count("\n") - text.endswith("\n")
    return (Extract(content_id, first_line, last_line, tokens),)
