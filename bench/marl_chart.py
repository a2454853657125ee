"""Curves over iterations as an SVG that stands by itself, in the colours and dashes of the other pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from services.trainer.experiments.chart import COLOURS, DASHES, GREY, INK

WIDTH, PLOT_HEIGHT, ROW = 780.0, 300.0, 20.0
LEFT, RIGHT, TOP = 58.0, 24.0, 44.0
FAINT, BOLD = 'stroke-width="1" stroke-opacity="0.25"', 'stroke-width="2.5"'
STEPS = tuple(digit * 10**power for power in range(9) for digit in (1, 2, 5))
SMOOTH = 0.7  # of the mean so far, in each point: what is drawn boldly


@dataclass(frozen=True)
class Curve:
    """A value from 0 to 1 after each iteration, and what is said of it."""

    label: str
    values: Sequence[float]
    first: int = 0  # iteration of the first value
    every: int = 1  # iterations between two


def smoothed(values: Sequence[float], share: float = SMOOTH) -> list[float]:
    """Exponential moving average without the bias towards its beginning (Kingma & Ba 2015, section 3)."""
    mean, found = 0.0, []
    for number, value in enumerate(values, start=1):
        mean = share * mean + (1 - share) * value
        found.append(mean / (1 - share**number))
    return found


def ticks(last: int, most: int = 8) -> range:
    """Whole iterations at even steps, so many at most."""
    step = next(size for size in STEPS if last / size < most)
    return range(0, last + 1, step)


def curves(title: str, axis: str, shown: Sequence[Curve], note: str = "") -> str:
    """The picture: values of every iteration smoothed and faintly behind that as measured, rarer ones as are.

    note: a line below the legend.
    """
    last = max(one.first + one.every * (len(one.values) - 1) for one in shown)
    bottom = TOP + PLOT_HEIGHT

    def x(iteration: float) -> float:
        return LEFT + iteration / max(1, last) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return bottom - min(value, 1.0) * PLOT_HEIGHT

    parts = [_text(LEFT, 24, title, weight="bold")]
    for step in range(6):
        value = step / 5
        parts.append(_line(LEFT, y(value), WIDTH - RIGHT, y(value), GREY))
        parts.append(_text(LEFT - 8, y(value) + 4, f"{value:.2g}", anchor="end"))
    parts += [_text(x(tick), bottom + 18, f"{tick}", anchor="middle") for tick in ticks(last)]
    parts.append(_text(WIDTH - RIGHT, bottom + 34, axis, anchor="end"))
    for number, one in enumerate(shown):
        style = f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-dasharray="{DASHES[number % len(DASHES)]}"'
        noisy = one.every == 1
        for values, look in ((one.values, FAINT), (smoothed(one.values) if noisy else one.values, BOLD)):
            points = " ".join(
                f"{x(one.first + one.every * at):.1f},{y(value):.1f}" for at, value in enumerate(values)
            )
            parts.append(f'<polyline points="{points}" fill="none" {look} {style}/>')
        at = bottom + 52 + ROW * number
        parts.append(f'<line x1="{LEFT}" y1="{at - 4}" x2="{LEFT + 36}" y2="{at - 4}" {BOLD} {style}/>')
        parts.append(_text(LEFT + 46, at, one.label))
    spoken = "; ".join(f"{one.label}: from {one.values[0]:.2f} to {one.values[-1]:.2f}" for one in shown)
    parts += [_text(LEFT, bottom + 52 + ROW * len(shown), note)] if note else []
    height = bottom + 52 + ROW * (len(shown) + bool(note))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" role="img"'
        f' font-family="system-ui, sans-serif" font-size="13">\n<title>{escape(title)}</title>\n'
        f"<desc>{escape(spoken)}</desc>\n"
        f'<rect width="{WIDTH:g}" height="{height:g}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _text(x: float, y: float, said: str, *, anchor: str = "start", weight: str = "normal") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{INK}"'
    return f"<text {place}>{escape(said)}</text>"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
