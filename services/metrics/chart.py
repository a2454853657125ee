"""Line charts as SVG, drawn by the server: geometry only, the template writes the elements."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 460.0, 250.0  # of the viewBox
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 14.0, 34.0  # margins
TICKS = 4  # about so many on each axis
LITTLE = 1e-3  # figures below are told in powers of ten
SMALL = 0.01  # an axis that ends below is labelled with powers of ten, as learning rates are
Data = tuple[tuple[int, float], ...]  # (step, value)


@dataclass(frozen=True)
class Tick:
    at: float  # position along its axis, in viewBox units
    label: str


@dataclass(frozen=True)
class Line:
    name: str
    points: tuple[tuple[float, float], ...]  # in viewBox units, in order of step
    data: Data

    @property
    def path(self) -> str:
        return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in self.points)


@dataclass(frozen=True)
class Chart:
    title: str
    description: str  # the summary a screen reader speaks
    unit: str
    lines: tuple[Line, ...]  # one at least
    steps: tuple[Tick, ...]
    values: tuple[Tick, ...]

    width, height, left, right, top, bottom = WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """Of all lines, in viewBox units."""
        return tuple(point for line in self.lines for point in line.points)

    @property
    def data(self) -> Data:
        """(step, value) of the first line."""
        return self.lines[0].data

    @property
    def table(self) -> list[tuple[int, list[float | None]]]:
        """The value of each line at every step that one of them has; None where it has none."""
        by_step = [dict(line.data) for line in self.lines]
        steps = sorted({step for line in self.lines for step, _ in line.data})
        return [(step, [values.get(step) for values in by_step]) for step in steps]


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
    return lines_chart(title, unit, {title: data})


def lines_chart(title: str, unit: str, series: Mapping[str, Sequence[tuple[int, float]]]) -> Chart | None:
    """Several of them in one, by their names; None when there is nothing finite to draw."""
    found: dict[str, Data] = {
        name: tuple((step, value) for step, value in data if math.isfinite(value))
        for name, data in series.items()
    }
    found = {name: data for name, data in found.items() if data}
    if not found:
        return None
    every = [point for data in found.values() for point in data]
    last_step = max(*(step for step, _ in every), 1)
    steps = [step for step in nice_ticks(0, last_step) if step <= last_step and step == int(step)]
    values = nice_ticks(*_bounds(every))
    x = Linear(0, last_step, LEFT, WIDTH - RIGHT)
    y = Linear(values[0], values[-1], HEIGHT - BOTTOM, TOP)
    told = [
        summary(title if len(series) == 1 else f"{title}, {name}", unit, data) for name, data in found.items()
    ]
    return Chart(
        title=title,
        description=" ".join(told),
        unit=unit,
        lines=tuple(
            Line(name, tuple((x(step), y(value)) for step, value in data), data)
            for name, data in found.items()
        ),
        steps=tuple(Tick(x(step), f"{step:,.0f}") for step in steps),
        values=tuple(Tick(y(value), _label(value, values)) for value in values),
    )


def summary(title: str, unit: str, data: Sequence[tuple[int, float]]) -> str:
    (first_step, first), (last_step, last) = data[0], data[-1]
    lowest_step, lowest = min(data, key=lambda point: point[1])
    if len(data) == 1:
        return f"{title}: {_told(last, unit)} at step {last_step}."
    return (
        f"{title} from {_told(first, unit)} at step {first_step} to {_told(last)} at step {last_step};"
        f" lowest {_told(lowest)} at step {lowest_step}."
    )


def _told(value: float, unit: str = "") -> str:
    figure = exponential(value) if 0 < abs(value) < LITTLE else f"{value:.4g}"
    return f"{figure} {unit}".rstrip()


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


def exponential(value: float) -> str:
    """Four digits without idle zeros: 0.00035 → 3.5e-4."""
    digits, _, exponent = f"{value:.3e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def _label(value: float, ticks: Sequence[float]) -> str:
    if max(map(abs, ticks)) < SMALL:
        return exponential(value) if value else "0"
    gap = ticks[1] - ticks[0]
    decimals = max(0, -math.floor(math.log10(gap) + 1e-9))
    return f"{value:,.{decimals}f}"
