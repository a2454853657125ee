"""Numbers, times and text of others, put into words: the filters of every template."""

from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from services.core.inert import escape as spelled
from services.core.inert import inert, inert_lines, is_harmful
from services.metrics.chart import LITTLE, exponential
from services.metrics.document import is_figure


def number(value: Any, digits: int | None = None) -> str:
    """1234567 → 1,234,567; 1.23456 with 3 digits → 1.235; nothing, NaN, infinity → a dash."""
    if not is_figure(value):
        return "–"
    return f"{value:,.{digits}f}" if digits is not None else f"{value:,.0f}"


def figure(value: Any) -> str:
    """A figure of a curve: 1234.5678 → 1,234.5678; a small one as engineers write it: 0.00035 → 3.5e-4."""
    return exponential(value) if is_figure(value) and 0 < abs(value) < LITTLE else number(value, 4)


def percent(value: Any) -> str:
    """A relative saving, signed: 0.0312 → −3.1 % (fewer bits)."""
    if not is_figure(value):
        return "–"
    shown = f"{abs(value) * 100:.1f} %"
    return f"−{shown}" if value > 0 else f"+{shown}"


def rate(value: Any) -> str:
    """A share of tasks that are solved: 0.4125 → 41.2 %."""
    return f"{100 * value:.1f} %" if is_figure(value) else "–"


def points(value: Any) -> str:
    """A difference of two such shares, signed: 0.113 → +11.3 points."""
    return f"{100 * value:+.1f} points".replace("-", "−") if is_figure(value) else "–"


def duration(seconds: Any) -> str:
    """75 → 1 min 15 s, 8000 → 2 h 13 min, 200000 → 2 d 7 h."""
    if not is_figure(seconds):
        return "–"
    left = max(0, round(seconds))
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for name, size in units:
        if left >= size or (name == "s" and not parts):
            parts.append(f"{left // size} {name}")
            left %= size
        elif parts:
            break
    return " ".join(parts[:2])


def moment(value: datetime | None) -> str:
    return "–" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def ago(value: datetime | None) -> Markup:
    """A <time>: 3 h ago, with the moment itself in its title; of what is to come, in 3 h."""
    if value is None:
        return Markup("–")
    seconds = (datetime.now(UTC) - value).total_seconds()
    text = (
        "just now"
        if 0 <= seconds < 10
        else f"{brief(seconds)} ago"
        if seconds >= 0
        else f"in {brief(-seconds)}"
    )
    return Markup('<time datetime="{}" title="{}">{}</time>').format(value.isoformat(), moment(value), text)


def brief(seconds: float) -> str:
    """The greatest unit alone: 8000 → 2 h."""
    return " ".join(duration(seconds).split(" ")[:2])


def code_words(text: str) -> Markup:
    """A sentence, as HTML; what stands in backquotes is code."""
    parts = [escape(inert(part)) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else part for index, part in enumerate(parts)
    )


def words(value: str) -> str:
    """A stable code for people: too_long_line → too long line."""
    return value.replace("_", " ")


def marked(text: str) -> Markup:
    """Text of many lines, as HTML, where each harmful character stands spelled out and marked."""
    shown = escape(text)
    for char in set(text) - {"\n", "\t"}:
        if is_harmful(char):
            shown = shown.replace(char, Markup('<mark class="escape">{}</mark>').format(spelled(char)))
    return shown


FILTERS = {
    f.__name__: f
    for f in (
        number,
        figure,
        percent,
        rate,
        points,
        duration,
        moment,
        ago,
        words,
        code_words,
        inert,
        inert_lines,
        marked,
    )
}
