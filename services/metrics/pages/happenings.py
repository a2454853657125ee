"""Events put into words for the pages: a pill, what it is of, why, and where more of it is."""

from collections.abc import Collection, Sequence

from services.core.models import Json
from services.metrics.links import adapter_page, round_page

DECISIONS = (
    "round.promoted", "round.refused", "round.failed", "adapter.promoted", "adapter.rolled_back",
    "adapter.rejected", "source.forgotten",
)  # fmt: skip
TROUBLE = ("service.stalled", "service.recovered", "round.failed", "adapter.rejected", "adapter.rolled_back")
WORDS = {  # kind → what its pill says, and how it looks
    "round.promoted": ("promoted", "good"),
    "round.refused": ("refused", ""),
    "round.failed": ("failed", "bad"),
    "adapter.promoted": ("promoted by hand", "good"),
    "adapter.rolled_back": ("rolled back", "wait"),
    "adapter.rejected": ("rejected", "bad"),
    "adapter.pinned": ("pinned", ""),
    "adapter.unpinned": ("unpinned", ""),
    "source.forgotten": ("forgotten", "wait"),
    "service.stalled": ("ill", "bad"),
    "service.recovered": ("well again", "good"),
}


def happenings(rows: Sequence[Json], kinds: Collection[str]) -> list[Json]:
    """The events of these kinds, as the macro of happenings.html shows them."""
    return [happening(row) for row in rows if row["kind"] in kinds]


def happening(row: Json) -> Json:
    """An event in words: a pill, what it is of, why, and where more of it is."""
    payload, track, number, adapter = row["payload"], row["track"], row["round_number"], row["adapter"]
    page = None
    if track and adapter:
        page = adapter_page(track, adapter)
    if track and number and row["kind"].startswith("round."):
        page = round_page(track, number)
    return {
        "at": row["at"],
        "track": track,
        "word": WORDS.get(row["kind"], (row["kind"].rpartition(".")[2].replace("_", " "), ""))[0],
        "look": WORDS.get(row["kind"], ("", ""))[1],
        "of": _subject(row),
        "gain": payload.get("gain_percent") if row["kind"] == "round.promoted" else None,
        "points": payload.get("gain_points") if row["kind"] == "round.promoted" else None,
        "reason": payload.get("reason") or payload.get("message"),
        "actor": None if payload.get("actor") == "gate" else payload.get("actor"),
        "page": page,
    }


def _subject(row: Json) -> str:
    """Round 4, round-0003, the trainer."""
    payload, kind = row["payload"], row["kind"]
    if kind.startswith("round.") and row["round_number"]:
        return f"Round {row['round_number']}"
    if kind == "adapter.rolled_back":
        return f"{payload.get('before') or 'the base model'} → {row['adapter'] or 'the base model'}"
    if kind.startswith("service."):
        return f"The {payload.get('service', 'service')}"
    return str(row["adapter"] or payload.get("target") or "The base model")
