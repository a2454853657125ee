"""One text: its code, units, score and why, where it is, what it is nearly the same as, where it was used."""

from typing import Annotated, Any

from flask import Blueprint, render_template
from pydantic import BaseModel, ConfigDict, Field

from services.core.db import Transaction
from services.core.reason_texts import POINTS
from services.metrics.api.reader import Reader, found
from services.metrics.observer import Observer
from services.metrics.pages.asked import asked_for
from services.metrics.pages.code import excerpt

LISTED = 50  # places, duplicates, members of a cluster, rounds
UNITS = 5000


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    line: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1  # the first that is shown


def add(pages: Blueprint, observer: Observer, reader: Reader) -> None:
    shows_code = observer.settings.metrics_show_code

    @pages.get("/contents/<string(length=64):sha256>")
    def content(sha256: str) -> tuple[str, int]:
        asked = asked_for(Asked)
        shown = reader(lambda tx: _shown(tx, sha256, asked.line, shows_code=shows_code))
        status = 410 if shown["content"].is_forgotten else 200
        in_force = observer.settings.quality_threshold
        return render_template("content.html", shows_code=shows_code, in_force=in_force, **shown), status


def _shown(transaction: Transaction, sha256: str, line: int, *, shows_code: bool) -> dict[str, Any]:
    wanted = sha256 if all(letter in "0123456789abcdef" for letter in sha256) else ""
    row = found(
        transaction.one("content_page", sha256=wanted),
        f"content {sha256!r}: a SHA-256 in 64 small hexadecimal digits is expected",
    )
    uses = transaction.all("content_uses", content_id=row.id, limit=LISTED)
    if row.is_forgotten:
        return {"content": row, "uses": uses}
    units = transaction.all("content_units", content_id=row.id, limit=UNITS)
    text = transaction.value("content_text", content_id=row.id) if shows_code else None
    return {
        "content": row,
        "uses": uses,
        "points": _points(row.score_reasons),
        "percentile": 100 * row.below / row.total if row.total else None,
        "units": units,
        "code": None if text is None else excerpt(text, units, row.redactions, line),
        "places": transaction.all("content_places", content_id=row.id, limit=LISTED),
        "duplicates": transaction.all("content_duplicates", content_id=row.id, limit=LISTED),
        "cluster": transaction.all(
            "content_cluster", content_id=row.id, cluster_id=row.cluster_id, limit=LISTED
        ),
        "set_aside": transaction.all("content_set_aside", cluster_id=row.cluster_id),
    }


def _points(reasons: dict[str, Any]) -> list[dict[str, Any]]:
    """The reasons of a score in the order of what they may give; of another version by what they gave."""
    listed = []
    for name, points in reasons.items():
        known = POINTS.get(name)
        most = max(points, known.most) if known else points
        listed.append({"name": name, "points": points, "most": most, "text": known.text if known else ""})
    return sorted(listed, key=lambda each: (-each["most"], each["name"]))
