"""A verdict as one JSON document, and that as a page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from services.core.models import Json
from services.trainer.verdict.advice import Elsewhere, Evidence, recommend
from services.trainer.verdict.answers import (
    COMPARED,
    CONFIDENCE,
    NAMES,
    Arm,
    Difference,
    Metric,
    Run,
    differences,
    figures,
    files,
)

METRICS: Mapping[Metric, str] = {"edit_similarity": "edit similarity", "exact_match": "exact match"}
DECIDES: Metric = "edit_similarity"  # the finer one: an answer is rarely right to the last character
AMORTISED_OVER = 10_000  # completions
SHOWN = 40  # completions on the page
CHART_POINTS = 20.0  # half of the chart's width at least


@dataclass(frozen=True)
class Subject:
    """What the verdict is of."""

    recipe: str
    adapter: str  # round-0003
    base_model: str
    device: str
    split: str | None  # time or cluster, where the round says so
    training_seconds: float | None
    elsewhere: Elsewhere | None


def document(
    subject: Subject, runs: Sequence[Run], retrieval: Json, items: Sequence[Mapping[str, str]]
) -> Json:
    """Everything that was found, with the recommendation.

    items: name, kind, before (the end of what the model saw) and wanted, of each, as the runs answer them.
    """
    compared = {metric: differences(runs, metric) for metric in METRICS}
    arms = {run.arm: figures(run) for run in runs}
    spent = subject.training_seconds
    evidence = Evidence(compared[DECIDES], arms, files(runs[0]), spent, subject.elsewhere)
    advice = recommend(evidence)
    return {
        **asdict(subject),
        "items": len(runs[0].answers),
        "files": evidence.files,
        "recommendation": {"action": advice.action, "reasons": list(advice.reasons)},
        "arms": {str(arm): asdict(found) for arm, found in arms.items()},
        "differences": [
            {"metric": metric, "of": str(a), "against": str(b), **asdict(found)}
            for metric, pairs in compared.items()
            for (a, b), found in pairs.items()
        ],
        "confidence": CONFIDENCE,
        "retrieval": retrieval,
        "training_seconds_per_completion": None if spent is None else spent / AMORTISED_OVER,
        "amortised_over": AMORTISED_OVER,
        "completions": [
            {**item, "answers": {str(run.arm): asdict(run.answers[at]) for run in runs}}
            for at, item in enumerate(items)
        ],
    }


def page(found: Json) -> str:
    """The document as HTML that needs nothing else; whatever it holds is escaped."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rows = [row for row in found["differences"] if row["metric"] == DECIDES]
    reach = max(CHART_POINTS, *(100 * max(abs(row["low"]), abs(row["high"])) for row in rows)) / 100
    return environment.get_template("report.html").render(
        found=found,
        names={str(arm): name for arm, name in NAMES.items()},
        metrics=METRICS,
        chart=[(row, *(_across(row[end], reach) for end in ("low", "mean", "high"))) for row in rows],
        shown=found["completions"][:SHOWN],
    )


def against_base(found: Json, arm: Arm, metric: Metric) -> Difference | None:
    """From a document: how much an arm is better than the base; None for the base itself."""
    if (arm, Arm.BASE) not in COMPARED:
        return None
    wanted = {"metric": metric, "of": str(arm), "against": str(Arm.BASE)}
    row = next(row for row in found["differences"] if wanted.items() <= row.items())
    return Difference(row["mean"], row["low"], row["high"])


def _across(value: float, reach: float) -> float:
    """Where a difference stands in a chart 100 wide, with none in its middle."""
    return round(50 + 50 * value / reach, 2)
