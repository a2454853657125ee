"""Where two texts differ, word by word."""

import re
from difflib import SequenceMatcher
from typing import NamedTuple

WORD = re.compile(r"\w+|\s+|[^\w\s]")
MOST_WORDS = 4000  # of a text that is compared; what is behind them counts as different


class Piece(NamedTuple):
    text: str
    differs: bool


def pieces(text: str, other: str) -> list[Piece]:
    """The text in pieces, each the same as in the other or not; joined they are the text."""
    words, others = WORD.findall(text)[:MOST_WORDS], WORD.findall(other)[:MOST_WORDS]
    matcher = SequenceMatcher(None, others, words, autojunk=False)
    made = [
        Piece("".join(words[start:end]), tag != "equal")
        for tag, _, _, start, end in matcher.get_opcodes()
        if end > start
    ]
    rest = text[sum(len(piece.text) for piece in made) :]
    return [*made, Piece(rest, True)] if rest else made
