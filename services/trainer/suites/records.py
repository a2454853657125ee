"""Reports of suites in the ledger."""

import math
from typing import Any

from services.core.db import Transaction, as_json
from services.core.models import Subject
from services.trainer.suites.suite import Report, Score

COLUMNS = (
    "round_id", "subject", "suite", "item", "metric", "name", "item_group", "value", "weight", "detail",
)  # fmt: skip
NUL, REPLACEMENT = "\0", "\N{REPLACEMENT CHARACTER}"  # PostgreSQL stores no NUL, in texts as in JSON


def record(tx: Transaction, round_id: int, subject: Subject, report: Report) -> None:
    """Store the report and its scores, in place of an earlier one of the same suite, model and round.

    A score that is not finite, of a training that diverged, is left out.
    """
    about: dict[str, Any] = {"round_id": round_id, "subject": subject, "suite": report.suite}
    tx.execute("forget_suite", **about)
    tx.execute(
        "record_suite",
        **about,
        version=report.version,
        items=len({score.item for score in report.scores}),
        figures=as_json(dict(report.figures)),
        seconds=report.seconds,
        from_cache=report.from_cache,
    )
    tx.copy(
        "suite_scores",
        COLUMNS,
        [(*about.values(), *_row(score)) for score in report.scores if math.isfinite(score.value)],
    )


def reports(tx: Transaction, round_id: int) -> dict[tuple[Subject, str], Report]:
    """Every report of the round, with its scores, by model and suite."""
    found = {}
    for row in tx.all("suite_reports", round_id=round_id):
        scores = tx.all("suite_scores", round_id=round_id, subject=row.subject, suite=row.suite)
        report = Report(
            suite=row.suite,
            version=row.version,
            scores=tuple(Score(*score) for score in scores),
            seconds=row.seconds,
            from_cache=row.from_cache,
            figures=row.figures,
        )
        found[Subject(row.subject), row.suite] = report
    return found


def _row(score: Score) -> tuple[Any, ...]:
    detail = _storable(score.detail)
    return (
        score.item, score.metric, _storable(score.name), _storable(score.group), score.value, score.weight,
        detail,
    )  # fmt: skip


def _storable(value: Any) -> Any:
    """Without what PostgreSQL's texts cannot hold: NUL and halves of surrogate pairs."""
    match value:
        case str():
            return value.encode(errors="replace").decode().replace(NUL, REPLACEMENT)
        case dict():
            return {_storable(key): _storable(item) for key, item in value.items()}
        case list() | tuple():
            return [_storable(item) for item in value]
        case _:
            return value
