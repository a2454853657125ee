"""`ratchet stats`: what came in and what is kept, by source, language and reason."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from services.cli.asking import connection
from services.cli.corpus import sources
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.cli.printing.sparkline import histogram
from services.core.db import Database
from services.core.models import Json
from services.core.reason_texts import text as reason_text
from services.metrics.document import strict_json

DECADES = 10  # columns of a histogram: 0–9, …, 90–100
UNKNOWN = "(unknown)"  # language of a file that was refused before it was recognised


def run(environment: Environment, *, source: str | None, language: str | None, as_json: bool) -> None:
    """Print the figures. Raises ConfigurationError for a source nobody knows, DatabaseUnavailableError."""
    with connection.opened(environment, "ratchet stats") as database:
        told = read(database, source, language, environment.settings.quality_threshold)
    print(strict_json(told) if as_json else "\n".join(lines(told)))


def read(database: Database, source: str | None, language: str | None, threshold: int) -> Json:
    chosen = {"source": source, "language": language}
    with database.transaction() as transaction:
        sources.require(transaction, source)
        files = transaction.all("stats_files", **chosen)
        contents = transaction.all("stats_contents", **chosen)
    return summary(files, contents, threshold) | {"chosen": chosen, "threshold": threshold}


def summary(files: Sequence[Any], contents: Sequence[Any], threshold: int) -> Json:
    """From rows of `stats_files` and `stats_contents`."""
    by_source: dict[str, Counter[str]] = defaultdict(Counter)
    by_language: dict[str, Counter[str]] = defaultdict(Counter)
    by_reason: Counter[str] = Counter()
    for row in files:
        outcome = "kept" if row.reason is None else "refused"
        by_source[row.source][outcome] += row.files
        by_language[row.language or UNKNOWN][outcome] += row.files
        if row.reason is not None:
            by_reason[row.reason] += row.files
    scores: dict[str, dict[int, Any]] = defaultdict(dict)
    for row in contents:
        scores[row.language][row.score] = row
    return {
        "totals": {**_outcomes(sum(by_source.values(), Counter())), **_measures(contents, threshold)},
        "sources": [{"source": name, **_outcomes(by_source[name])} for name in sorted(by_source)],
        "languages": [
            {
                "language": name,
                **_outcomes(by_language[name]),
                **_measures(list(scores[name].values()), threshold),
            }
            for name in sorted(by_language, key=lambda name: (-by_language[name]["kept"], name))
        ],
        "reasons": [
            {"reason": reason, "files": count, "why": reason_text(reason)}
            for reason, count in by_reason.most_common()
        ],
    }


def _outcomes(counts: Counter[str]) -> Json:
    return {"files": counts.total(), "kept": counts["kept"], "refused": counts["refused"]}


def _measures(rows: Sequence[Any], threshold: int) -> Json:
    """Of contents, each text once, however many files hold it."""
    count = sum(row.contents for row in rows)
    decades = [0] * DECADES
    for row in rows:
        decades[min(row.score // 10, DECADES - 1)] += row.contents
    above = sum(row.contents for row in rows if row.score >= threshold)
    return {
        "contents": count,
        "bytes": sum(row.bytes for row in rows),
        "lines": sum(row.lines for row in rows),
        "mean_score": round(sum(row.score * row.contents for row in rows) / count, 1) if count else None,
        "share_above_threshold": round(above / count, 4) if count else None,
        "scores_by_decade": decades,
    }


def lines(told: Json) -> Iterator[str]:
    totals = told["totals"]
    yield (
        f"{totals['files']:,} files: {totals['kept']:,} kept, {totals['refused']:,} refused;"
        f" {totals['contents']:,} distinct texts, {totals['bytes'] / 1e6:,.1f} MB"
    )
    if told["languages"]:
        yield ""
        yield (
            f"{'language':<14}{'kept':>9}{'refused':>9}{'MB':>9}{'mean':>6}{'≥ ' + str(told['threshold']):>7}"
            "   scores 0–100"
        )
        yield from (_language(row) for row in told["languages"])
    if told["sources"]:
        yield ""
        yield f"{'source':<30}{'files':>9}{'kept':>9}{'refused':>9}"
        for row in told["sources"]:
            yield f"{inert(row['source']):<30}{row['files']:>9,}{row['kept']:>9,}{row['refused']:>9,}"
    if told["reasons"]:
        yield ""
        yield f"{'refused because':<24}{'files':>9}"
        for row in told["reasons"]:
            yield f"{row['reason']:<24}{row['files']:>9,}   {row['why'] or 'a reason of another version'}"


def _language(row: Json) -> str:
    mean = "–" if row["mean_score"] is None else f"{row['mean_score']:.0f}"
    share = "–" if row["share_above_threshold"] is None else f"{100 * row['share_above_threshold']:.0f} %"
    return (
        f"{row['language']:<14}{row['kept']:>9,}{row['refused']:>9,}"
        f"{row['bytes'] / 1e6:>9,.1f}{mean:>6}{share:>7}"
        f"   {histogram(row['scores_by_decade'])}"
    ).rstrip()
