"""What the page shows, put into words: numbers, times and charts for the template."""

from datetime import UTC, datetime
from typing import Any

from services.core.models import Json, RoundState
from services.metrics.cached import Reading
from services.metrics.chart import line_chart
from services.metrics.document import is_figure
from services.metrics.health import Health

REASONS = 12  # rejections and languages listed; the rest is in /metrics


def view(reading: Reading[dict[str, Any]], health: Health) -> dict[str, Any]:
    """The template's variables."""
    value = reading.value
    shown: dict[str, Any] = {
        "health": health,
        "reading": reading,
        "now": datetime.now(UTC),
        "value": value,
    }
    if value is not None:
        shown["charts"] = _charts(value["curve"])
        shown["waiting"] = _waiting(value)
        shown["rounds"] = [_round(row) for row in value["rounds"]]
        shown["rejected"] = list(value["ingest"]["rejected"].items())[:REASONS]
        shown["languages"] = list(value["ingest"]["languages"].items())[:REASONS]
    return shown


def _charts(curve: Json | None) -> list[Any]:
    if curve is None:
        return []
    wanted = (
        ("Training loss", "nats a token", "train", "loss"),
        ("Validation bits per byte", "bits a byte", "eval", "bits_per_byte"),
    )
    found = []
    for title, unit, kind, key in wanted:
        rows = [(row["step"], row.get(key)) for row in curve[kind]]
        numbers = [(step, value) for step, value in rows if is_figure(value)]
        chart = line_chart(title, unit, numbers)
        if chart is not None:
            found.append(chart)
    return found


def _waiting(value: Json) -> Json | None:
    """How far the next round is, as its trainer says: new contents and how many are needed."""
    for service in value["services"]:
        needed = service["detail"].get("needed")
        if service["service"] == "trainer" and isinstance(needed, int) and needed > 0:
            return {"new": service["detail"].get("new_contents") or 0, "needed": needed}
    return None


def _round(row: Json) -> Json:
    """One line of the table of rounds."""
    verdict, training = row["verdict"] or {}, row["training"] or {}
    bits = verdict.get("bits_per_byte") or {}
    closed = row["closed_at"] or datetime.now(UTC)
    return {
        **row,
        "before": bits.get(verdict.get("against") or "base"),
        "after": bits.get("candidate"),
        "improvement": verdict.get("improvement"),
        "reason": verdict.get("reason"),
        "steps": training.get("steps"),
        "seconds": (closed - row["opened_at"]).total_seconds(),
        "is_open": row["state"] == RoundState.OPEN,
    }


def number(value: Any, digits: int | None = None) -> str:
    """1234567 → 1,234,567; 1.23456 with 3 digits → 1.235; nothing, NaN, infinity → a dash."""
    if not is_figure(value):
        return "–"
    return f"{value:,.{digits}f}" if digits is not None else f"{value:,.0f}"


def percent(value: Any) -> str:
    """A relative saving, signed: 0.0312 → −3.1 % (fewer bits)."""
    if not is_figure(value):
        return "–"
    shown = f"{abs(value) * 100:.1f} %"
    return f"−{shown}" if value > 0 else f"+{shown}"


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


def words(value: str) -> str:
    """A stable code for people: too_long_line → too long line."""
    return value.replace("_", " ")


FILTERS = {f.__name__: f for f in (number, percent, duration, moment, words)}
