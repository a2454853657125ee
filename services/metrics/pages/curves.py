"""What a round logs while it trains, one chart a figure: as SVG by the server, as JSON for a live one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.core.models import Json
from services.metrics.chart import Chart, line_chart
from services.metrics.document import is_figure

POINTS = 240  # of a curve, evenly thinned
GIB = 2**30


@dataclass(frozen=True)
class Figure:
    name: str  # in addresses
    title: str
    unit: str
    kind: str  # train or eval: which of the logged points have it
    metric: str
    scale: float = 1.0  # the metric times this is in the unit


FIGURES = (
    Figure("loss", "Training loss", "nats a token", "train", "loss"),
    Figure("bits", "Validation loss", "bits a byte", "eval", "bits_per_byte"),
    Figure("rate", "Learning rate", "millionths", "train", "learning_rate", 1e6),
    Figure("gradient", "Gradient norm", "", "train", "grad_norm"),
    Figure("speed", "Speed", "tokens a second", "train", "tokens_per_s"),
    Figure("memory", "Peak memory", "GiB", "train", "memory_bytes", 1 / GIB),
)
BY_NAME: Mapping[str, Figure] = {figure.name: figure for figure in FIGURES}


def points(rows: Sequence[Any], figure: Figure) -> list[tuple[int, float]]:
    """(step, value) of what is finite, in order; rows of `metrics_curve`."""
    found = ((row.step, row.metrics.get(figure.metric)) for row in rows if row.kind == figure.kind)
    return [(step, value * figure.scale) for step, value in found if is_figure(value)]


def charts(rows: Sequence[Any]) -> list[tuple[Figure, Chart]]:
    """The figures that there is something to draw of."""
    drawn = ((figure, line_chart(figure.title, figure.unit, points(rows, figure))) for figure in FIGURES)
    return [(figure, chart) for figure, chart in drawn if chart is not None]


def as_json(rows: Sequence[Any], figure: Figure) -> Json:
    """For the chart in the browser; null where a value is not finite."""
    of_kind = [(row.step, row.metrics.get(figure.metric)) for row in rows if row.kind == figure.kind]
    scaled = [value * figure.scale if is_figure(value) else None for _, value in of_kind]
    return {
        "x": [step for step, _ in of_kind],
        "x_name": "step",
        "series": [{"name": figure.title, "unit": figure.unit, "points": scaled, "dash": False}],
    }
