"""BM25 over a repository: snippets that look like the code before the cursor.

Windows of 20 lines, every 10 lines, are what is searched; with each come the 10 lines after it, since what
follows similar code is what helps (RepoCoder: Zhang et al. 2023, arXiv 2303.12570, section 2.2; ReACC: Lu
et al. 2022). The ranking is Lucene's BM25 (Robertson and Zaragoza 2009) by the library bm25s.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import bm25s
import numpy as np

from services.trainer.verdict.corpus import Text

WINDOW_LINES, STRIDE_LINES = 20, 10
K1, B = 1.5, 0.75  # bm25s' own; Lucene has k1 1.2
WORD = re.compile(r"[^\W\d]\w*|\d{2,}")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
MIN_PART = 2  # characters: i, j and the like say nothing


@dataclass(frozen=True, slots=True)
class Snippet:
    """Lines of a content, ends included."""

    path: str
    first_line: int  # from 1
    text: str
    score: float


class Index:
    """The windows of one source's contents, each at a path of its own."""

    def __init__(self, contents: Sequence[Text]) -> None:
        self._contents = contents
        self._lines = [content.text.splitlines(keepends=True) for content in contents]
        vocabulary: dict[str, int] = defaultdict(lambda: len(vocabulary))
        windows: list[list[int]] = []
        owners, starts = [], []
        for owner, lines in enumerate(self._lines):
            ids = [[vocabulary[word] for word in words(line)] for line in lines]
            for start in _starts(len(lines)):
                window = [word for line in ids[start : start + WINDOW_LINES] for word in line]
                if window:
                    windows.append(window)
                    owners.append(owner)
                    starts.append(start)
        self._owners = np.array(owners, np.int64)  # (W,) of each window: its content
        self._starts = starts
        self._paths = {content.path: owner for owner, content in enumerate(contents)}
        self._clusters = np.array([contents[owner].cluster_id for owner in owners], np.int64)  # (W,)
        self._model = bm25s.BM25(k1=K1, b=B)
        if windows:
            self._model.index((windows, dict(vocabulary)), show_progress=False)

    def __len__(self) -> int:
        return len(self._starts)

    def search(self, query: str, *, path: str, cluster_id: int | None, most: int) -> list[Snippet]:
        """The best snippets, best first, none overlapping another.

        None is of `path`, and none of the cluster: neither the file the query is from, nor what is
        nearly the same.
        """
        asked = (
            [word for word in dict.fromkeys(words(query)) if word in self._model.vocab_dict] if self else []
        )
        if not asked:
            return []
        scores = self._model.get_scores(asked)  # (W,)
        scores[(self._clusters == cluster_id) | (self._owners == self._paths.get(path, -1))] = 0.0
        found: list[Snippet] = []
        taken: set[tuple[int, int]] = set()
        for window in np.argsort(-scores, kind="stable"):
            if len(found) == most or scores[window] <= 0:
                break
            owner, start = int(self._owners[window]), self._starts[window]
            lines = range(start, min(start + WINDOW_LINES + STRIDE_LINES, len(self._lines[owner])))
            if any((owner, line) in taken for line in lines):
                continue
            taken.update((owner, line) for line in lines)
            text = "".join(self._lines[owner][lines.start : lines.stop])
            found.append(Snippet(self._contents[owner].path, start + 1, text, float(scores[window])))
        return found


def query_of(prefix: str) -> str:
    """What is searched for: the last lines before the cursor, as many as a window has."""
    return "".join(prefix.splitlines(keepends=True)[-WINDOW_LINES:])


def words(text: str) -> Iterator[str]:
    """Identifiers in lower case, and their parts: parseJSONFile → parsejsonfile, parse, json, file."""
    for word in WORD.findall(text):
        yield from _parts(word)


@lru_cache(maxsize=200_000)
def _parts(word: str) -> tuple[str, ...]:
    whole = word.strip("_").lower()
    parts = [part.lower() for part in PART.findall(word)]
    kept = [part for part in (whole, *(parts if len(parts) > 1 else ())) if len(part) >= MIN_PART]
    return tuple(kept)


def _starts(lines: int) -> range:
    """First lines of the windows over so many lines; the last one reaches the end."""
    return range(0, max(1, lines - WINDOW_LINES + STRIDE_LINES), STRIDE_LINES)
