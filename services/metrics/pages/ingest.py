"""What comes in: sources, rates, scores and the threshold, languages, refusals; one source; refused files."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from flask import Blueprint, render_template
from markupsafe import Markup, escape
from pydantic import BaseModel, ConfigDict, Field

from services.core.db import Transaction
from services.core.reason_texts import TEXTS
from services.metrics.api.paging import LARGEST, cut
from services.metrics.api.reader import Reader, found
from services.metrics.cached import Cached
from services.metrics.observer import Observer
from services.metrics.pages.asked import asked_for
from services.metrics.pages.rates import Rates
from services.metrics.pages.scores import Scores

PERIOD = 2.0  # seconds for which the counts of all sources are shared
SOURCES, NEAR, FILES, REFUSED, LOOKS = 100, 6, 100, 50, 30  # rows shown at once
CHOICES = 200  # sources to choose from
Text = Annotated[str | None, Field(max_length=4000, pattern=r"^[^\x00]+$")]  # PostgreSQL holds no NUL


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    after: Text = None  # a source's name, or a path
    threshold: Annotated[int | None, Field(ge=0, le=100)] = None


class AskedSource(BaseModel):
    model_config = ConfigDict(extra="forbid")

    after: Text = None  # a path


class AskedRefusals(BaseModel):
    model_config = ConfigDict(extra="forbid")

    after: Annotated[int | None, Field(ge=0, le=LARGEST)] = None  # id of the last file seen
    reason: Annotated[str | None, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")] = None
    source: Text = None


@dataclass(frozen=True)
class Language:
    name: str
    contents: int
    admitted: int  # of them, by a threshold


@dataclass(frozen=True)
class Reason:
    code: str
    files: int
    text: Markup | None  # for a person; None: of another version


@dataclass(frozen=True)
class Summary:
    """All of ingest in numbers."""

    sources: int
    kept: int
    reasons: tuple[Reason, ...]  # of refusals, the most frequent first
    scores: Scores
    by_language: dict[str, Scores]
    rates: Rates

    @property
    def refused(self) -> int:
        return sum(reason.files for reason in self.reasons)

    def languages(self, threshold: int) -> list[Language]:
        """Those with the most contents first."""
        listed = [
            Language(name, scores.total, scores.admitted(threshold))
            for name, scores in self.by_language.items()
        ]
        return sorted(listed, key=lambda language: (-language.contents, language.name))


def summary(transaction: Transaction) -> Summary:
    counts, rows = transaction.all("ingest_counts"), transaction.all("ingest_scores")
    languages = sorted({row.language for row in rows})
    return Summary(
        sources=transaction.one("metrics_sources").sources,
        kept=sum(row.files for row in counts if not row.reason),
        reasons=reasons(counts),
        scores=Scores.of(rows),
        by_language={name: Scores.of(row for row in rows if row.language == name) for name in languages},
        rates=Rates.of(transaction.all("ingest_rates"), transaction.value("database_now")),
    )


def reasons(counts: Sequence[Any]) -> tuple[Reason, ...]:
    """From rows with a reason and a number of files; the most frequent first."""
    files: Counter[str] = Counter()
    for row in counts:
        if row.reason:
            files[row.reason] += row.files
    return tuple(Reason(code, number, told(code)) for code, number in files.most_common())


def told(code: str | None) -> Markup | None:
    """What a reason means, with its `commands` marked as such; None for one of another version."""
    text = TEXTS.get(code or "")
    if text is None:
        return None
    parts = (
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(text.split("`"))
    )
    return Markup("").join(parts)


def add(pages: Blueprint, observer: Observer, reader: Reader) -> None:
    def read_summary() -> Summary:
        with reader.transaction() as transaction:
            return summary(transaction)

    shared = Cached(read_summary, PERIOD)

    @pages.get("/ingest")
    def ingest() -> str:
        asked, reading = asked_for(Asked), shared.read()
        in_force = observer.settings.quality_threshold
        threshold = in_force if asked.threshold is None else asked.threshold

        def lists(transaction: Transaction) -> tuple[list[Any], list[Any]]:
            sources = transaction.all("ingest_sources", after=asked.after or "", limit=SOURCES + 1)
            return sources, transaction.all("ingest_near_threshold", threshold=threshold, limit=NEAR)

        rows, near = reader(lists)
        sources, following = cut(rows, SOURCES, lambda row: str(row.name))
        return render_template(
            "ingest.html",
            reading=reading,
            summary=reading.value,
            sources=sources,
            next=following,
            asked=asked,
            near=near,
            threshold=threshold,
            in_force=in_force,
        )

    @pages.get("/ingest/rejections")
    def rejections() -> str:
        asked = asked_for(AskedRefusals)
        return render_template(
            "ingest_rejections.html", asked=asked, **reader(lambda tx: _refusals(tx, asked))
        )

    @pages.get("/ingest/sources/<string(minlength=1, maxlength=1000):name>")
    def source(name: str) -> str:
        asked = asked_for(AskedSource)
        return render_template(
            "ingest_source.html", asked=asked, **reader(lambda tx: _source(tx, name, asked))
        )


def _refusals(transaction: Transaction, asked: AskedRefusals) -> dict[str, Any]:
    source = None if asked.source is None else _found(transaction, asked.source)
    rows = transaction.all(
        "api_rejections",
        after=asked.after or 0,
        limit=REFUSED + 1,
        reason=asked.reason,
        source=asked.source,
    )
    shown, following = cut(rows, REFUSED, lambda row: str(row.id))
    counts = (
        transaction.all("ingest_counts")
        if source is None
        else transaction.all("ingest_source_counts", source_id=source.id)
    )
    choices = [row.name for row in transaction.all("ingest_source_names", limit=CHOICES)]
    return {
        "rows": shown,
        "next": following,
        "reasons": reasons(counts),
        "sources": choices if source is None or source.name in choices else [source.name, *choices],
        "text": told(asked.reason),
    }


def _source(transaction: Transaction, name: str, asked: AskedSource) -> dict[str, Any]:
    source = _found(transaction, name)
    rows = transaction.all("ingest_files", source_id=source.id, after=asked.after or "", limit=FILES + 1)
    files, following = cut(rows, FILES, lambda row: str(row.path))
    counts = transaction.all("ingest_source_counts", source_id=source.id)
    return {
        "source": source,
        "files": files,
        "next": following,
        "languages": [row for row in counts if not row.reason],
        "reasons": reasons(counts),
        "kept": sum(row.files for row in counts if not row.reason),
        "refused": sum(row.files for row in counts if row.reason),
        "looks": transaction.all("ingest_looks", source_id=source.id, limit=LOOKS),
    }


def _found(transaction: Transaction, name: str) -> Any:
    """The source; answers 404 that names it."""
    return found(None if "\0" in name else transaction.one("ingest_source", name=name), f"source {name!r}")
