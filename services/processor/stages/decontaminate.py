"""Whether a text holds a task of a benchmark: word for word, or its solution under other names.

Two rules. Ten words in a row in common (Qwen2.5-Coder, arXiv 2409.12186), where the words tell
something: numbers, keywords and imports alone are everywhere. And a stretch of code with the skeleton
of a solution (skeleton.py): a copy with other names, other layout, other comments. What each catches
and what it refuses by mistake: docs/decisions/0008-decontamination.md.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from services.processor.stages import benchmarks, skeleton, words
from services.processor.stages.benchmarks import Task

MIN_TELLING = 3  # distinct telling words among the ten; ours: measured in the decision record
MIN_TELLING_LETTERS = 3
TOO_COMMON = 3  # tasks; what so many share is their frame: `METADATA = {'author': …`
MIN_SHARED = 6  # grams of a skeleton; ours: shorter ones are in any code
MIN_SHARE = 0.6  # of the solution's grams; ours
MIN_SHARE_AT_FIRST = 0.4  # the same before comments and strings are taken out
MIN_SHARE_OF_SHAPES = 0.3  # the same where all words are alike
MAX_STRETCH = 2  # times as many tokens as the solution has grams,
MORE_STRETCH = 40  # and these: within so many its grams must lie

# Words that any code holds, in any order
IDIOM = frozenset(
    b"""and args assert bool break class continue def dict elif else except false float for from function if
    import int is key len let list map max min new none not null or print public raise range return self set
    static str string sum this true try tuple type val value var void while with""".split()
)
IMPORTS = re.compile(r"^[ \t]*+(?:import|from|#include|using|package|use)\b[^\n]*+", re.MULTILINE)

_MIX, _END = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)


@dataclass(frozen=True, slots=True)
class _Index:
    """Which tasks hold a gram. Nearly all that are asked for are unknown: one look at a bit says so."""

    tasks: Mapping[int, tuple[int, ...]]  # gram → numbers of the tasks
    sizes: tuple[int, ...]  # distinct grams of each task
    maybe: npt.NDArray[np.bool_]  # at the top bits of a gram: some known one begins so
    shift: np.uint64

    @classmethod
    def of(cls, tasks: Sequence[Task], grams_of_each: Iterable[Iterable[int]]) -> "_Index":
        """Of all grams but those that many tasks of one benchmark share."""
        holders: dict[int, list[int]] = defaultdict(list)
        for number, grams in enumerate(grams_of_each):
            for gram in set(grams):
                holders[gram].append(number)
        telling = {
            gram: tuple(at)
            for gram, at in holders.items()
            if max(Counter(tasks[number].benchmark for number in at).values()) < TOO_COMMON
        }
        sizes = Counter(number for at in telling.values() for number in at)
        bits = min(24, max(16, (64 * len(telling)).bit_length()))
        shift = np.uint64(64 - bits)
        maybe = np.zeros(1 << bits, dtype=np.bool_)
        maybe[np.fromiter(telling, np.uint64, len(telling)) >> shift] = True
        return cls(telling, tuple(sizes[number] for number in range(len(tasks))), maybe, shift)

    def hits(self, grams: words.Hashes) -> list[tuple[int, int]]:
        """Position and value of each gram that some task holds."""
        found = np.flatnonzero(self.maybe.take((grams >> self.shift).view(np.int64)))
        pairs = zip(found.tolist(), grams[found].tolist(), strict=True)
        return [(position, gram) for position, gram in pairs if gram in self.tasks]

    def held(self, grams: words.Hashes, share: float, least: int = 1) -> list[int]:
        """The tasks of whose grams this share, and no fewer than these, lie in one stretch of the text."""
        hits: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for hit in self.hits(grams):
            for number in self.tasks[hit[1]]:
                hits[number].append(hit)
        return [
            number
            for number, own in hits.items()
            if len(own) >= (needed := max(least, share * self.sizes[number]))
            and _most_in_a_stretch(own, MAX_STRETCH * self.sizes[number] + MORE_STRETCH) >= needed
        ]


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """All tasks, ready to be looked for."""

    names: tuple[str, ...]
    languages: frozenset[str]  # that the solutions are written in
    text: _Index
    shape: _Index  # of the code without comments of one line, all words alike
    code: _Index  # of the same, the names alone alike
    bare: _Index  # of the code without any comments and strings

    @classmethod
    def load(cls, folder: Path | None) -> "Benchmarks":
        """HumanEval and the files of the folder. Raises ConfigurationError as benchmarks.load does."""
        return cls.of(benchmarks.load(folder))

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> "Benchmarks":
        bare = [_grams(skeleton.bare(task.solution, task.language).encode()) for task in tasks]
        bare = [grams if len(grams) >= MIN_SHARED else grams[:0] for grams in bare]
        long = zip(tasks, bare, strict=True)  # enough to be told from any other code
        solutions = [
            skeleton.uncommented(task.solution.encode(), task.language) if len(grams) else b""
            for task, grams in long
        ]
        return cls(
            names=tuple(task.name for task in tasks),
            languages=frozenset(task.language for task in tasks if task.solution),
            text=_Index.of(tasks, map(_telling_grams, tasks)),
            shape=_Index.of(tasks, map(skeleton.telling_shapes, solutions)),
            code=_Index.of(tasks, (_grams(data).tolist() for data in solutions)),
            bare=_Index.of(tasks, (grams.tolist() for grams in bare)),
        )

    def match(self, text: str, language: str, grams: words.Hashes | None = None) -> str | None:
        """The task that the text holds, and by which rule; None if none.

        Args:
            text: the whole file.
            language: as language.detect has it.
            grams: words.ngrams of the text, where they are known already.
        """
        fives = words.ngrams(words.hashes(text.encode())) if grams is None else grams
        if hits := self.text.hits(_tens(fives)):
            return f"{self.names[self.text.tasks[hits[0][1]][0]]}: ten words in a row in common"
        if language in self.languages and (number := self._same_skeleton(text, language)) is not None:
            return f"{self.names[number]}: its solution under other names"
        return None

    def _same_skeleton(self, text: str, language: str) -> int | None:
        """The first task whose solution's skeleton is in the text; what is asked last costs most."""
        data = skeleton.uncommented(text.encode(), language)
        if not self.shape.held(skeleton.shapes(data), MIN_SHARE_OF_SHAPES):
            return None
        if not self.code.held(_grams(data), MIN_SHARE_AT_FIRST):
            return None
        held = self.bare.held(_grams(skeleton.bare(text, language).encode()), MIN_SHARE, MIN_SHARED)
        return min(held, default=None)


def _most_in_a_stretch(hits: Sequence[tuple[int, int]], stretch: int) -> int:
    """The most distinct grams within so many tokens; the hits are in the order of their positions."""
    most, first = 0, 0
    inside: dict[int, int] = defaultdict(int)
    for position, gram in hits:
        inside[gram] += 1
        while hits[first][0] < position - stretch:
            left = hits[first][1]
            inside[left] -= 1
            if not inside[left]:
                del inside[left]
            first += 1
        most = max(most, len(inside))
    return most


def _grams(data: bytes) -> skeleton.Hashes:
    return skeleton.grams(skeleton.tokens(data))


def _telling_grams(task: Task) -> set[int]:
    """The hashes of the task's ten words in a row that tell something."""
    telling: set[int] = set()
    for text in task.texts:
        data = IMPORTS.sub("", text).encode()
        row = words.folded(data)
        tens = _tens(words.ngrams(words.hashes(data))).tolist()
        telling.update(gram for at, gram in enumerate(tens) if _tells(row[at : at + 2 * words.NGRAM]))
    return telling


def _tells(ten: Sequence[bytes]) -> bool:
    telling = {
        word for word in ten if len(word) >= MIN_TELLING_LETTERS and not word.isdigit() and word not in IDIOM
    }
    return len(telling) >= MIN_TELLING


def _tens(fives: words.Hashes) -> words.Hashes:  # (words - 9,) uint64
    """A hash of each ten words that follow one another, from those of five."""
    if len(fives) <= words.NGRAM:
        return fives[:0]
    tens = fives[words.NGRAM :] * _MIX
    tens += fives[: -words.NGRAM]
    tens *= _END
    return tens
