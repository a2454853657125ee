"""What a round logs while it trains, one chart a figure: as SVG by the server, as JSON for a live one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.core.models import Json
from services.metrics.chart import Chart, lines_chart
from services.metrics.document import is_figure

POINTS = 240  # of a curve, evenly thinned
GIB = 2**30
ROLES = "roles"  # below it the figures of each agent of a team: role → figure → value


@dataclass(frozen=True)
class Figure:
    name: str  # in addresses
    title: str
    unit: str
    kind: str  # train or eval: which of the logged points have it
    metric: str
    scale: float = 1.0  # the metric times this is in the unit
    by_role: bool = False  # one line for each agent of a team, where there is one
    of_team: bool | None = None  # only where a team practises, or only elsewhere; None: both


FIGURES = (
    Figure("reward", "Reward", "of an episode", "train", "reward"),
    Figure("passed", "Pass rate of the validation tasks", "%", "eval", "solved", 100),
    Figure("kl", "Distance to the base model (KL)", "nats a token", "train", "kl_reference", by_role=True),
    Figure("entropy", "Entropy", "nats a token", "train", "entropy", by_role=True),
    Figure("value", "Value loss", "", "train", "value_loss"),
    Figure("written", "Writing", "tokens a second", "train", "tokens_per_second", by_role=True),
    Figure("policy", "Policy loss", "", "train", "loss", of_team=True),
    Figure("loss", "Training loss", "nats a token", "train", "loss", of_team=False),
    Figure("bits", "Validation bits per byte", "bits a byte", "eval", "bits_per_byte"),
    Figure("rate", "Learning rate", "", "train", "learning_rate"),
    Figure("gradient", "Gradient norm", "", "train", "grad_norm"),
    Figure("speed", "Speed", "tokens a second", "train", "tokens_per_s"),
    Figure("memory", "Peak memory", "GiB", "train", "memory_bytes", 1 / GIB),
)
BY_NAME: Mapping[str, Figure] = {figure.name: figure for figure in FIGURES}
COMPARED = ("reward", "passed", "loss", "bits")  # of two rounds: how far each came


def points(rows: Sequence[Any], figure: Figure) -> list[tuple[int, float]]:
    """(step, value) of what is finite, in order; rows of `metrics_curve`."""
    found = ((row.step, row.metrics.get(figure.metric)) for row in rows if row.kind == figure.kind)
    return [(step, value * figure.scale) for step, value in found if is_figure(value)]


def series(
    rows: Sequence[Any], figure: Figure, team: Sequence[str]
) -> dict[str, list[tuple[int, float | None]]]:
    """The figure's lines by name, with a value or None at each step: of each role, or one of all.

    team: the roles in their order.
    """
    of_kind = [row for row in rows if row.kind == figure.kind]
    known = {role for row in of_kind for role in _roles(row, figure)}
    roles = [role for role in team if role in known]
    if roles:
        return {
            role: [(row.step, _scaled(_roles(row, figure).get(role), figure)) for row in of_kind]
            for role in roles
        }
    return {figure.title: [(row.step, _scaled(row.metrics.get(figure.metric), figure)) for row in of_kind]}


def charts(rows: Sequence[Any], team: Sequence[str] = ()) -> list[tuple[Figure, Chart]]:
    """The figures that there is something to draw of. team: roles of the round's agents in order."""
    found = []
    is_team = any(is_figure(row.metrics.get("reward")) for row in rows)
    for figure in FIGURES:
        if figure.of_team not in (None, is_team):
            continue
        lines = {
            name: [(step, value) for step, value in line if value is not None]
            for name, line in series(rows, figure, team).items()
        }
        chart = lines_chart(figure.title, figure.unit, lines)
        if chart is not None:
            found.append((figure, chart))
    return found


def compared(a: Sequence[Any], b: Sequence[Any]) -> list[Chart]:
    """Two rounds in one chart a figure, as lines A and B, where both have it; rows of `metrics_curve`."""
    is_team = any(is_figure(row.metrics.get("reward")) for row in (*a, *b))
    found = []
    for figure in map(BY_NAME.__getitem__, COMPARED):
        lines = {"A": points(a, figure), "B": points(b, figure)}
        if all(lines.values()) and figure.of_team in (None, is_team):
            found.append(lines_chart(figure.title, figure.unit, lines))
    return [chart for chart in found if chart is not None]


def as_json(rows: Sequence[Any], figure: Figure, team: Sequence[str] = ()) -> Json:
    """For the chart in the browser; null where a value is not finite."""
    lines = series(rows, figure, team)
    return {
        "x": [step for step, _ in next(iter(lines.values()))],
        "x_name": "step",
        "series": [
            {"name": name, "unit": figure.unit, "points": [value for _, value in line], "dash": False}
            for name, line in lines.items()
        ],
    }


def _roles(row: Any, figure: Figure) -> dict[str, Any]:
    """Role → value, of those that have it."""
    told = row.metrics.get(ROLES) if figure.by_role else None
    if not isinstance(told, dict):
        return {}
    return {
        str(role): each[figure.metric]
        for role, each in told.items()
        if isinstance(each, dict) and figure.metric in each
    }


def _scaled(value: Any, figure: Figure) -> float | None:
    return value * figure.scale if is_figure(value) else None
