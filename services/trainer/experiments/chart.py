"""Pictures of a report as SVG that stands by itself: pass@k curves, and differences with their intervals."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from services.trainer.experiments.findings import Report

WIDTH, CURVES_HEIGHT, ROW = 780.0, 400.0, 30.0  # of the viewBox
LEFT, RIGHT, TOP, BOTTOM = 58.0, 24.0, 44.0, 44.0  # margins
# Okabe & Ito 2008: told apart by everybody; dashes tell them apart without colour
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "1 5", "12 4")
GREY, INK = "#d8d8d8", "#222222"
K_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def curves(report: Report) -> str:
    """Pass@k by k, a line a variant, k on a logarithmic axis."""
    most = max(max(value for _, value in one.curve) for one in report.variants)
    top = _round_up(most)
    last = max(2, report.samples)
    bottom = CURVES_HEIGHT - BOTTOM - 20.0 * len(report.variants)

    def x(k: float) -> float:
        return LEFT + math.log(k) / math.log(last) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return bottom - value / top * (bottom - TOP)

    parts = [_text(LEFT, 24, "pass@k of problems the training has not seen", weight="bold")]
    for step in range(5):
        value = top * step / 4
        parts.append(_line(LEFT, y(value), WIDTH - RIGHT, y(value), GREY))
        parts.append(_text(LEFT - 8, y(value) + 4, f"{100 * value:.3g} %", anchor="end"))
    parts += [_text(x(k), bottom + 18, str(k), anchor="middle") for k in K_TICKS if k <= last]
    parts.append(_text(WIDTH - RIGHT, bottom + 34, "k (programs a problem)", anchor="end"))
    for number, one in enumerate(report.variants):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
        points = " ".join(f"{x(k):.1f},{y(value):.1f}" for k, value in one.curve)
        style = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        parts.append(f'<polyline points="{points}" fill="none" {style}/>')
        if len(one.curve) < K_TICKS[2]:
            parts += [
                f'<circle cx="{x(k):.1f}" cy="{y(v):.1f}" r="3" fill="{colour}"/>' for k, v in one.curve
            ]
        at = bottom + 52 + 20.0 * number
        parts.append(f'<line x1="{LEFT}" y1="{at - 4:.1f}" x2="{LEFT + 36}" y2="{at - 4:.1f}" {style}/>')
        first, final = one.curve[0][1], one.curve[-1][1]
        said = f"{one.label}: {first:.1%} at k = 1, {final:.1%} at k = {one.curve[-1][0]}"
        parts.append(_text(LEFT + 46, at, said))
    spoken = "; ".join(f"{one.label} from {one.curve[0][1]:.1%}" for one in report.variants)
    return _svg(CURVES_HEIGHT + 16, "Pass@k curves", spoken, parts)


def differences(report: Report) -> str:
    """Each difference as a point with its interval; the line of no difference in the middle."""
    shown = report.differences
    reach = _round_up(max(0.01, *(max(abs(one.low), abs(one.high)) for one in shown)))
    label = 380.0
    bottom = TOP + ROW * len(shown) + 10

    def x(value: float) -> float:
        return label + (value + reach) / (2 * reach) * (WIDTH - RIGHT - label - 10)

    parts = [_text(14, 24, f"Differences of pass@k, {report.confidence:.0%} intervals", weight="bold")]
    for step in range(-2, 3):
        value = reach * step / 2
        parts.append(_line(x(value), TOP, x(value), bottom, INK if step == 0 else GREY))
        parts.append(_text(x(value), bottom + 18, f"{100 * value:+.3g}" if step else "0", anchor="middle"))
    parts.append(_text(WIDTH - RIGHT, bottom + 36, "points", anchor="end"))
    for number, one in enumerate(shown):
        at = TOP + ROW * number + ROW / 2 + 5
        parts.append(_text(14, at + 4, f"{one.of} − {one.against}, pass@{one.k}"))
        colour = COLOURS[1] if one.shown else COLOURS[0]
        parts.append(_line(x(one.low), at, x(one.high), at, colour, 2))
        fill = colour if one.shown else "#ffffff"
        parts.append(
            f'<circle cx="{x(one.difference):.1f}" cy="{at:.1f}" r="5" fill="{fill}" stroke="{colour}"'
            ' stroke-width="2"/>'
        )
    parts.append(_text(14, bottom + 36, "filled: shown, after Holm's correction"))
    return _svg(bottom + 50, "Differences with intervals", "; ".join(_spoken(report)), parts)


def _spoken(report: Report) -> Iterator[str]:
    for one in report.differences:
        yield (
            f"{one.of} minus {one.against} at pass@{one.k}: {100 * one.difference:+.1f} points,"
            f" {100 * one.low:+.1f} to {100 * one.high:+.1f}"
        )


def _round_up(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten; of shares never above 1."""
    if value <= 0:
        return 0.01
    magnitude = 10.0 ** math.floor(math.log10(value))
    return min(1.0, next(step * magnitude for step in (1, 2, 5, 10) if step * magnitude >= value - 1e-12))


def _svg(height: float, title: str, description: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" role="img"'
        f' font-family="system-ui, sans-serif" font-size="13">\n<title>{escape(title)}</title>\n'
        f"<desc>{escape(description)}</desc>\n"
        f'<rect width="{WIDTH:g}" height="{height:g}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _text(x: float, y: float, said: str, *, anchor: str = "start", weight: str = "normal") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{INK}"'
    return f"<text {place}>{escape(said)}</text>"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> str:
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {place} stroke="{colour}" stroke-width="{width:g}"/>'
