"""Token documents for the training bench: seeded, so every arm reads the same ones in the same order.

Two kinds: `full`, documents of exactly one row, and `code`, lengths as source files have them
(log-normal, median 500 tokens, the seeds' 50–8,000 characters). Ids are uniform: a random model
learns nothing from them, and the loss of every arm is the same to within rounding.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["full", "code"]
Document = list[int]  # token ids

LENGTH = 4096  # tokens a row
VOCABULARY = 150_000  # ids, below the vocabulary of every Qwen2.5
MEDIAN, SPREAD, SHORTEST = 500, 0.9, 16  # tokens, sigma of the logarithm, tokens


@dataclass(frozen=True)
class Step:
    """The documents of one optimizer step, and the rows that hold them packed."""

    documents: list[Document]
    rows: list[list[Document]]  # each at most LENGTH tokens together

    @property
    def tokens(self) -> int:
        """Real tokens: no padding."""
        return sum(map(len, self.documents))

    @property
    def targets(self) -> int:
        """Tokens with a loss: all but the first of each document, which nothing precedes."""
        return self.tokens - len(self.documents)


def documents(
    number: int, seed: int, kind: Kind, length: int = LENGTH, vocabulary: int = VOCABULARY
) -> list[Document]:
    """The first `number` documents of a seed and kind."""
    stream = _stream(seed, kind, length, vocabulary)
    return [next(stream) for _ in range(number)]


def steps(
    number: int, rows: int, seed: int, kind: Kind, length: int = LENGTH, vocabulary: int = VOCABULARY
) -> list[Step]:
    """The stream of `documents` cut into steps, each as long as best-fit packing gets into `rows` rows."""
    stream = _stream(seed, kind, length, vocabulary)
    cut: list[Step] = []
    taken: list[Document] = []
    packed: list[list[Document]] = []
    while len(cut) < number:
        document = next(stream)
        tried = best_fit([*taken, document], length)
        if len(tried) > rows:
            cut.append(Step(taken, packed))
            taken, packed = [document], [[document]]
        else:
            taken, packed = [*taken, document], tried
    return cut


def best_fit(documents: list[Document], length: int) -> list[list[Document]]:
    """Best-fit decreasing: each document, longest first, into the fullest row that has room for it."""
    rows: list[list[Document]] = []
    filled: list[int] = []  # tokens
    for document in sorted(documents, key=len, reverse=True):
        fitting = [index for index, tokens in enumerate(filled) if tokens + len(document) <= length]
        if not fitting:
            rows.append([])
            filled.append(0)
        row = max(fitting, key=filled.__getitem__) if fitting else -1
        rows[row].append(document)
        filled[row] += len(document)
    return rows


def _stream(seed: int, kind: Kind, length: int, vocabulary: int) -> Iterator[Document]:
    rng = random.Random(seed)
    while True:
        size = length if kind == "full" else int(rng.lognormvariate(math.log(MEDIAN), SPREAD))
        yield rng.choices(range(vocabulary), k=max(min(SHORTEST, length), min(length, size)))
