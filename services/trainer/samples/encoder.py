"""Text to token ids, in batches. What looks like a special token in somebody's code stays text."""

import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

from services.core.errors import ConfigurationError
from services.trainer.samples.sample import Tokenizer

END_OF_DOCUMENT = ("<|endoftext|>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "</s>")
TAG = re.compile(r"<.+>|\[[A-Z_/]+\]")  # an added token that is markup, whatever its declaration says
DUMMY = "▁"  # what SentencePiece puts before a text
NEWLINE = ord("\n")


class Located(NamedTuple):
    """The tokens of a text, and the byte of its UTF-8 that each begins at."""

    ids: "array[int]"
    starts: list[int]


class Encoder:
    """One tokenizer, as sample makers use it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.name = getattr(tokenizer, "name_or_path", "") or "the tokenizer"
        added = {str(token): (number, token) for number, token in tokenizer.added_tokens_decoder.items()}
        self._added = {content: number for content, (number, _) in added.items()}
        markup = [c for c, (_, token) in added.items() if getattr(token, "special", True) or TAG.fullmatch(c)]
        either = "|".join(map(re.escape, sorted(markup, key=len, reverse=True)))
        self._lookalike = re.compile(either) if markup else None
        self._lookalike_starts = re.compile(f"(?=(?:{either}))")  # of overlapping ones too
        self._backend: Any = getattr(tokenizer, "backend_tokenizer", None)
        if self._backend is not None and self._backend.truncation is not None:
            self._backend.no_truncation()
        if self._backend is not None and self._backend.padding is not None:
            self._backend.no_padding()
        first = tokenizer.convert_ids_to_tokens(self._raw(["a"])[0])
        self._lead = "\n" if first and first[0].startswith(DUMMY) else ""
        self._lead_tokens = len(self._raw(["\n"])[0]) if self._lead else 0

    @cached_property
    def begin(self) -> list[int]:
        """What the tokenizer puts before a document by itself: a token or nothing."""
        ids = list(self.tokenizer.encode("", add_special_tokens=True))
        return ids[:1] if ids and ids[0] == self.tokenizer.bos_token_id else []

    @cached_property
    def end(self) -> int:
        """The token that ends a document of pre-training; for many chat models another than a turn's."""
        known = (self._added[name] for name in END_OF_DOCUMENT if name in self._added)
        found = next(known, self.tokenizer.eos_token_id)
        if found is None:
            raise ConfigurationError(f"{self.name} has no token that ends a document: give it an eos_token")
        return found

    def token(self, name: str) -> int | None:
        """The id of an added token, None when there is none of that name."""
        return self._added.get(name)

    def marked(self, text: str) -> list[int]:
        """Ids of our own text, in which special tokens are what they say."""
        return list(self._raw([self._lead + text])[0])[self._lead_tokens :] if text else []

    def plain(self, texts: Sequence[str]) -> "list[array[int]]":
        """Ids of each text; together they mean exactly its characters. No special token is among them."""
        parts = [self._inert(text) for text in texts]
        encoded = iter(self._raw([self._lead + part for each in parts for part in each]))
        return [
            array("i", chain.from_iterable(next(encoded)[self._lead_tokens :] for _ in each))
            for each in parts
        ]

    def located(self, texts: Sequence[str]) -> "list[Located]":
        """As `plain`, with the byte that each token begins at.

        Raises ConfigurationError for a tokenizer that is not a fast one.
        """
        if not texts:
            return []
        if self._backend is None:
            raise ConfigurationError(
                f"{self.name} is no fast tokenizer: a base model needs one that transformers reads from a"
                " tokenizer.json"
            )
        parts = [self._inert(text) for text in texts]
        flat = [self._lead + part for each in parts for part in each]
        encoded = iter(self._backend.encode_batch(flat, add_special_tokens=False))
        return [self._joined(each, encoded) for each in parts]

    def _joined(self, parts: Sequence[str], encoded: Iterator[Any]) -> "Located":
        ids: array[int] = array("i")
        starts: list[int] = []
        at = 0
        for part in parts:
            encoding, data = next(encoded), part.encode()
            ids.extend(encoding.ids[self._lead_tokens :])
            found = _starts(encoding, part, data, self._lead_tokens)
            starts += [at + start for start in found] if at else found
            at += len(data)
        return Located(ids, starts)

    def decode_each(self, ids: Iterable[int]) -> list[str]:
        """Each token by itself; bytes that are no whole character show as U+FFFD."""
        return [self.tokenizer.decode([token]) for token in ids]  # type: ignore[attr-defined]

    def _inert(self, text: str) -> list[str]:
        """The text in parts that each hold no special token's name: cut behind its first character."""
        if self._lookalike is None or self._lookalike.search(text) is None:
            return [text]
        cuts = [0, *(found.start() + 1 for found in self._lookalike_starts.finditer(text)), len(text)]
        return [text[start:end] for start, end in pairwise(cuts) if end > start]

    def _raw(self, texts: list[str]) -> list[list[int]]:
        if self._backend is None:
            return [self.tokenizer.encode(text, add_special_tokens=False) for text in texts]
        return [each.ids for each in self._backend.encode_batch_fast(texts, add_special_tokens=False)]


def _starts(encoding: Any, text: str, data: bytes, lead_tokens: int) -> list[int]:
    """Where tokens begin in `data`: by the length of byte-level tokens, else by the offsets given.

    Offsets alone would not do: some byte-level tokenizers leave leading spaces out of them.
    """
    sizes = [len(token) for token in encoding.tokens]
    if not lead_tokens and sum(sizes) == len(data) and all(map(str.isprintable, encoding.tokens)):
        return list(accumulate(sizes, initial=0))[:-1]
    offsets = [max(0, start - bool(lead_tokens)) for start, _ in encoding.offsets[lead_tokens:]]
    if len(data) == len(text):
        return offsets
    bytes_before = list(accumulate((len(character.encode()) for character in text), initial=0))
    return [bytes_before[start] for start in offsets]


def cut_tokens(data: bytes, starts: Sequence[int], most: int, best: Collection[int] = ()) -> list[int]:
    """The tokens at which to cut so that no piece has more than `most`: 0, …, the number of tokens.

    Pieces are as long as they can be; they end before a token of `best` that lies in their last eighth,
    or else with a line that ends in their second half, never inside a character.
    """
    cuts = [0]
    while len(starts) - cuts[-1] > most:
        full = cuts[-1] + most
        last_half = range(full, cuts[-1] + most // 2, -1)
        last_eighth = range(full, full - most // 8, -1)
        if best and (preferred := next((at for at in last_eighth if at in best), None)) is not None:
            cuts.append(preferred)
            continue
        line = (at for at in last_half if data[starts[at] - 1] == NEWLINE or data[starts[at]] == NEWLINE)
        whole = (at for at in range(full, cuts[-1], -1) if _is_clean(data, starts, at))
        cut = next((at for at in line if _is_clean(data, starts, at)), None) or next(whole, full)
        cuts.append(cut)
    return [*cuts, len(starts)]


def _is_clean(data: bytes, starts: Sequence[int], at: int) -> bool:
    return data[starts[at]] & 0xC0 != 0x80 and starts[at] > starts[at - 1]
