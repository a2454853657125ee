"""Fill in the middle: prefix, suffix, then the middle that belongs between them.

After Bavarian et al., "Efficient Training of Language Models to Fill in the Middle" (arXiv 2207.14255,
section 3): a document is cut at two characters drawn uniformly, before it is encoded, and told in one of
two orders. PSM: <PRE> prefix <SUF> suffix <MID> middle. SPM, in the variant made for training with both
(appendix D, the one StarCoder and Code Llama use): <PRE> <SUF> suffix <MID> prefix middle. The loss is on
everything. AST spans are whole units, or blocks that are indented together, as in AST-FIM (Gong et al.
2025, arXiv 2506.00204).
"""

import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from services.core.errors import ConfigurationError
from services.trainer.samples.boundaries import lines_of
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.source import Unit

MIN_MIDDLE, MOST_OF_TEXT = 10, 0.7  # characters of an AST span at least; its share of the text at most
BLOCKS_TRIED = 20  # lines looked at for a block to leave out


class Names(NamedTuple):
    """What a family of models calls the three places; without `middle` the suffix always comes first."""

    prefix: str
    suffix: str
    middle: str | None
    end: str | None = None  # None: as any document ends


FAMILIES = (
    Names("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen2.5-Coder, CodeGemma
    Names("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, StarCoder2, Granite
    Names("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    Names("▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"),  # Code Llama
    Names("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # DeepSeek-Coder
    Names("[PREFIX]", "[SUFFIX]", None),  # Codestral: [SUFFIX] suffix [PREFIX] prefix middle
)


@dataclass(frozen=True)
class Tokens:
    """The same as ids."""

    prefix: int
    suffix: int
    middle: int | None
    end: int


class Split(NamedTuple):
    """A text in three; joined in this order it is the text."""

    prefix: str
    middle: str
    suffix: str


def tokens(encoder: Encoder, base_model: str) -> Tokens:
    """Raises ConfigurationError when the tokenizer has no tokens for it."""
    for names in FAMILIES:
        found = [encoder.token(name) for name in names[:3] if name is not None]
        if None not in found:
            prefix, suffix, *middle = (token for token in found if token is not None)
            end = encoder.token(names.end) if names.end else None
            return Tokens(prefix, suffix, next(iter(middle), None), encoder.end if end is None else end)
    raise ConfigurationError(
        f"fim_rate needs a tokenizer with fill-in-the-middle tokens, and that of base_model {base_model} has"
        " none: set fim_rate to 0, or take a base that was trained with them"
        " (Qwen2.5-Coder, StarCoder2, Code Llama, DeepSeek-Coder, Codestral)"
    )


def split(text: str, units: Sequence[Unit], random_: random.Random, ast_rate: float) -> Split:
    """The text cut in three: around a unit or block with probability `ast_rate`, anywhere otherwise.

    `units` are the text's, by their bytes. Without a fitting unit or block it is cut anywhere.
    """
    span = _ast_span(text, units, random_) if random_.random() < ast_rate else None
    start, end = span or sorted((random_.randint(0, len(text)), random_.randint(0, len(text))))
    return Split(text[:start], text[start:end], text[end:])


def encode(
    splits: Sequence[Split], suffix_first: Sequence[bool], special: Tokens, encoder: Encoder
) -> "list[array[int]]":
    """The ids of each split document, from its first special token to its end."""
    prefixes = encoder.plain([split.prefix for split in splits])
    middles = encoder.plain([split.middle for split in splits])
    suffixes = encoder.plain([split.suffix for split in splits])
    joined = encoder.plain([split.prefix + split.middle for split in splits])  # no token torn where they meet
    made = []
    for at, spm in enumerate(suffix_first):
        if special.middle is None:
            order = [[special.suffix], suffixes[at], [special.prefix], joined[at]]
        elif spm:
            order = [[special.prefix, special.suffix], suffixes[at], [special.middle], joined[at]]
        else:
            order = [
                [special.prefix], prefixes[at], [special.suffix], suffixes[at], [special.middle], middles[at],
            ]  # fmt: skip
        ids: array[int] = array("i")
        for part in [*order, [special.end]]:
            ids.extend(part)
        made.append(ids)
    return made


def _ast_span(text: str, units: Sequence[Unit], random_: random.Random) -> tuple[int, int] | None:
    """Characters of a unit, or of a block where no unit fits."""
    data = text.encode()
    fitting = [
        unit for unit in units if MIN_MIDDLE <= unit.end_byte - unit.start_byte <= MOST_OF_TEXT * len(data)
    ]
    if fitting:
        unit = random_.choice(fitting)
        return len(data[: unit.start_byte].decode()), len(data[: unit.end_byte].decode())
    lines = lines_of(text)
    for _ in range(BLOCKS_TRIED if lines else 0):
        first = random_.randrange(len(lines))
        last = _block_end(lines, first)
        start, size = sum(map(len, lines[:first])), sum(map(len, lines[first:last]))
        if last > first and MIN_MIDDLE <= size <= MOST_OF_TEXT * len(text):
            return start, start + size
    return None


def _block_end(lines: Sequence[str], first: int) -> int:
    """The line behind the block that begins here: a line more indented than the one above it."""
    depth = _depth(lines[first])
    if not lines[first].strip() or not depth or first == 0 or _depth(lines[first - 1]) >= depth:
        return first
    last = first + 1
    while last < len(lines) and (not lines[last].strip() or _depth(lines[last]) >= depth):
        last += 1
    while not lines[last - 1].strip():
        last -= 1
    return last


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
