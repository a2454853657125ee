"""Line charts as SVG, drawn by the server: geometry only, the template writes the elements."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 460.0, 250.0  # of the viewBox
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 14.0, 34.0  # margins
TICKS = 4  # about so many on each axis


@dataclass(frozen=True)
class Tick:
    at: float  # position along its axis, in viewBox units
    label: str


@dataclass(frozen=True)
class Chart:
    title: str
    description: str  # the summary a screen reader speaks
    unit: str
    points: tuple[tuple[float, float], ...]  # in viewBox units, in order of step
    path: str
    steps: tuple[Tick, ...]
    values: tuple[Tick, ...]
    data: tuple[tuple[int, float], ...]  # (step, value)

    width, height, left, right, top, bottom = WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM


@dataclass(frozen=True)
class Linear:
    """Maps low…high to start…end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)


def line_chart(title: str, unit: str, data: Sequence[tuple[int, float]]) -> Chart | None:
    """A chart of value by step; None when there is nothing finite to draw."""
    data = tuple((step, value) for step, value in data if math.isfinite(value))
    if not data:
        return None
    last_step = max(*(step for step, _ in data), 1)
    steps = [step for step in nice_ticks(0, last_step) if step <= last_step and step == int(step)]
    values = nice_ticks(*_bounds(data))
    x = Linear(0, last_step, LEFT, WIDTH - RIGHT)
    y = Linear(values[0], values[-1], HEIGHT - BOTTOM, TOP)
    points = tuple((x(step), y(value)) for step, value in data)
    return Chart(
        title=title,
        description=summary(title, unit, data),
        unit=unit,
        points=points,
        path="M" + " L".join(f"{px:.1f} {py:.1f}" for px, py in points),
        steps=tuple(Tick(x(step), f"{step:,.0f}") for step in steps),
        values=tuple(Tick(y(value), _label(value, values)) for value in values),
        data=data,
    )


def summary(title: str, unit: str, data: Sequence[tuple[int, float]]) -> str:
    (first_step, first), (last_step, last) = data[0], data[-1]
    lowest_step, lowest = min(data, key=lambda point: point[1])
    if len(data) == 1:
        return f"{title}: {last:.4g} {unit} at step {last_step}."
    return (
        f"{title} from {first:.4g} {unit} at step {first_step} to {last:.4g} at step {last_step};"
        f" lowest {lowest:.4g} at step {lowest_step}."
    )


def nice_ticks(low: float, high: float, wanted: int = TICKS) -> list[float]:
    """Round numbers that enclose [low, high], 1, 2 or 5 times a power of ten apart (Heckbert 1990)."""
    span = (high - low) or abs(high) or 1.0
    raw = span / wanted
    magnitude = 10.0 ** math.floor(math.log10(raw))
    gap = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= raw * (1 - 1e-9))
    first, last = math.floor(low / gap + 1e-9), math.ceil(high / gap - 1e-9)
    if first == last:
        last += 1
    return [round(index * gap, 12) for index in range(first, last + 1)]


def _bounds(data: Sequence[tuple[int, float]]) -> tuple[float, float]:
    values = [value for _, value in data]
    return min(values), max(values)


def _label(value: float, ticks: Sequence[float]) -> str:
    gap = ticks[1] - ticks[0]
    decimals = max(0, -math.floor(math.log10(gap) + 1e-9))
    return f"{value:,.{decimals}f}"
