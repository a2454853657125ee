"""What the database says of one file, as far as this role may read it."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.cli.asking.judged import Verdict
from services.core.db import Transaction
from services.processor.store import stored

MOST_HOLDERS = 6  # other paths that are named
ROUNDS = ("rounds", "round_contents")
DUPLICATES = ("bands", "groups")


@dataclass(frozen=True, slots=True)
class Content:
    row: Any  # of `explain_content`
    units: list[Any]
    holders: list[str]  # paths of files that hold it, at most MOST_HOLDERS
    percentile: float | None
    in_cluster: int  # contents
    near_duplicates: int  # files that are nearly the same and were refused for it
    rounds: list[Any] | None  # None: this role may not know


@dataclass(frozen=True, slots=True)
class Record:
    file: Any  # of `explain_file`
    content: Content | None  # that it holds
    duplicate_of: Content | None  # that is kept in its stead


class Percentiles:
    """Where a score stands among the live contents of its language."""

    def __init__(self, histogram: list[Any]) -> None:
        self._counts: Mapping[str, dict[int, int]] = defaultdict(dict)
        for row in histogram:
            self._counts[row.language][row.score] = row.contents
        self._known: dict[tuple[str, int], float | None] = {}

    def of(self, language: str, score: int) -> float | None:
        """How many of 100 score lower; None when there are none of this language."""
        if (language, score) not in self._known:
            self._known[language, score] = self._share_below(language, score)
        return self._known[language, score]

    def _share_below(self, language: str, score: int) -> float | None:
        counts = self._counts.get(language)
        if not counts:
            return None
        below = sum(contents for each, contents in counts.items() if each < score)
        return round(100 * below / sum(counts.values()), 1)


def look_up(transaction: Transaction, source: str, path: str) -> Record | None:
    """The record of a path, or of the refused directory that it lies in; None: the database knows neither."""
    parts = path.rstrip("/").split("/")
    above = ["/".join(parts[:depth]) + "/" for depth in range(1, len(parts) + 1)]
    file = transaction.one("explain_file", source=source, paths=[path, *above])
    if file is None:
        return None
    content = content_of(transaction, file.content_id) if file.content_id is not None else None
    kept = content_of(transaction, file.duplicate_of) if file.duplicate_of is not None else None
    return Record(file, content, kept)


def content_of(transaction: Transaction, content_id: int) -> Content:
    row = transaction.one("explain_content", id=content_id)
    readable = may_read(transaction, "units", "score_histogram", *ROUNDS)
    percentiles = Percentiles(transaction.all("score_histogram") if "score_histogram" in readable else [])
    holders = transaction.all("explain_holders", id=content_id, most=MOST_HOLDERS)
    return Content(
        row=row,
        units=transaction.all("explain_units", id=content_id) if "units" in readable else [],
        holders=[f"{holder.source}/{holder.path}" for holder in holders],
        percentile=percentiles.of(row.language, row.score),
        in_cluster=transaction.value("explain_cluster", cluster=row.cluster_id),
        near_duplicates=transaction.value("explain_duplicates", id=content_id),
        rounds=transaction.all("explain_rounds", id=content_id) if readable.issuperset(ROUNDS) else None,
    )


def kept_instead(transaction: Transaction, verdict: Verdict) -> Content | None:
    """The stored content that is nearly the same as this draft and would be kept in its stead."""
    if verdict.draft is None or not may_read(transaction, *DUPLICATES).issuperset(DUPLICATES):
        return None
    drafts = {verdict.draft.sha256: verdict.draft}
    kept = stored.decide(drafts, stored.look_up(transaction, drafts)).rejected.get(verdict.draft.sha256)
    if kept is None:
        return None
    content_id = transaction.value("explain_address", sha256=kept.hex())
    return content_of(transaction, content_id) if content_id is not None else None


def may_read(transaction: Transaction, *tables: str) -> set[str]:
    return {row.name for row in transaction.all("cli_may_read", tables=list(tables))}
