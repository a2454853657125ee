"""Adapters: the tree of a track, a page of each, and any two side by side."""

from collections.abc import Sequence
from typing import Annotated, Any

from flask import Blueprint, render_template
from pydantic import BaseModel, ConfigDict, Field

from services.core.db import Transaction
from services.core.models import Json
from services.metrics.api.paging import Absent, Name
from services.metrics.api.reader import Reader, found
from services.metrics.observer import Observer
from services.metrics.pages import comparison, composition, curves, lineage, practice, verdicts
from services.metrics.pages.asked import asked_for
from services.metrics.pages.configuration import differences

TRACKS = 40
ROWS = 40  # adapters on a page
LINEAGE = 5_000  # adapters of a track whose lanes are drawn, and moves that are read
MOVES, CHILDREN, SOURCES, ITEMS = 50, 20, 100, 5_000
CURVE_POINTS = 100  # of each of two that are compared
ADAPTER = "/adapters/<string(minlength=1, maxlength=200):track>/<string(minlength=1, maxlength=200):name>"


class Asked(BaseModel):
    """Which adapters are listed."""

    model_config = ConfigDict(extra="forbid")

    track: Name | Absent = None
    page: Annotated[int, Field(ge=1, le=LINEAGE)] = 1


class AskedPair(BaseModel):
    """Two adapters, each as track/name."""

    model_config = ConfigDict(extra="forbid")

    a: Name | Absent = None
    b: Name | Absent = None


def add(pages: Blueprint, _observer: Observer, reader: Reader) -> None:
    @pages.get("/adapters")
    def adapters() -> str:
        asked = asked_for(Asked)
        return render_template("adapters.html", **reader(lambda tx: _listed(tx, asked)))

    @pages.get(ADAPTER)
    def adapter(track: str, name: str) -> str:
        return render_template("adapter.html", **reader(lambda tx: _shown(tx, track, name)))

    @pages.get("/adapters/compare")
    def compare_adapters() -> str:
        asked = asked_for(AskedPair)
        return render_template(
            "compare_adapters.html", asked=asked, **reader(lambda tx: _compared(tx, asked))
        )


def _listed(transaction: Transaction, asked: Asked) -> Json:
    tracks = transaction.all("page_tracks", limit=TRACKS)
    track = asked.track if asked.track is not None else tracks[0].name if tracks else None
    if track is None:
        return {"tracks": [], "track": None, "rows": [], "page": 1, "pages": 1, "champion": None}
    parents = [(row.id, row.parent) for row in transaction.all("page_lineage", track=track, limit=LINEAGE)]
    listed = [*parents, (lineage.BASE, None)] if len(parents) < LINEAGE else parents
    shown = lineage.drawn(listed, (asked.page - 1) * ROWS, ROWS)
    standing = _standing(transaction, track)
    told = transaction.all("page_adapters", ids=[row.adapter_id for row in shown])
    by_id = {row.id: row for row in told}
    return {
        "tracks": tracks,
        "track": track,
        "rows": [(row, by_id.get(row.adapter_id), standing.marks.get(row.adapter_id, ())) for row in shown],
        "standing": standing,
        "champion": by_id.get(standing.champion),
        "adapters": len(parents),
        "page": asked.page,
        "pages": max(1, -(-len(listed) // ROWS)),
    }


def _standing(transaction: Transaction, track: str) -> lineage.Standing:
    moves = transaction.all("page_standing", track=track, limit=LINEAGE)  # the newest first
    return lineage.standing([lineage.Move(*move) for move in reversed(moves)])


def _adapter(transaction: Transaction, track: str, name: str) -> Any:
    known = "\0" not in track + name
    row = transaction.one("page_adapter", track=track, directory=name) if known else None
    return found(row, f"adapter {name!r} of {track!r}")


def _shown(transaction: Transaction, track: str, name: str) -> Json:
    row = _adapter(transaction, track, name)
    about = {"round_id": row.round_id}
    standing = _standing(transaction, track)
    return {
        "adapter": row,
        "marks": standing.marks.get(row.id, ()),
        "standing": standing,
        "verdict_told": verdicts.verdict(row.verdict, row.recipe),
        "held_out": transaction.all("api_held_out", **about),
        "suites": transaction.all("api_suites", **about),
        "made": composition.composition(transaction.all("page_composition", most=composition.DRAWN, **about)),
        "exposures": transaction.one("page_exposures", **about),
        "team": practice.team(row.recipe),
        "tasks": composition.practice(transaction.all("api_round_tasks", **about)),
        "practice": transaction.one("page_practice", **about),
        "sources": transaction.all("page_round_sources", limit=SOURCES, **about),
        "moves": transaction.all("page_moves", track=track, adapter_id=row.id, limit=MOVES),
        "children": transaction.all("page_children", adapter_id=row.id, limit=CHILDREN),
    }


def _compared(transaction: Transaction, asked: AskedPair) -> Json:
    """The pair, or, until both are named, what may be chosen."""
    if asked.a is None or asked.b is None:
        return {"pair": None, "known": _known(transaction)}
    a, b = (_adapter(transaction, *_named(name)) for name in (asked.a, asked.b))
    rounds = {"a": a.round_id, "b": b.round_id}
    measured = [transaction.all("api_suites", round_id=each) for each in rounds.values()]
    items = transaction.all("page_shared_items", limit=ITEMS, **rounds)
    suites = comparison.suites(items)
    shown = [item for suite in suites for item in suite.shown]
    return {
        "pair": (a, b),
        "verdicts": tuple(verdicts.verdict(each.verdict, each.recipe) for each in (a, b)),
        "figures": comparison.figures(*measured),
        "teams": tuple(practice.is_practice(each.recipe) for each in (a, b)),
        "held_out": transaction.one("page_shared_held_out", **rounds),
        "tasks": comparison.tasks(items),
        "charts": curves.compared(*(_curve(transaction, each) for each in rounds.values())),
        "differences": differences(a.recipe, b.recipe),
        "suites": suites,
        "answers": _answers(transaction, shown, rounds),
        "cut": len(items) == ITEMS,
    }


def _curve(transaction: Transaction, round_id: int) -> Sequence[Any]:
    return transaction.all("metrics_curve", round_id=round_id, points=CURVE_POINTS)


def _answers(transaction: Transaction, shown: Sequence[comparison.Item], rounds: dict[str, int]) -> Any:
    rows = transaction.all(
        "page_answers",
        suites=sorted({item.suite for item in shown}),
        items=sorted({item.key for item in shown}),
        **rounds,
    )
    return comparison.answers(shown, rows, **rounds)


def _named(name: str) -> tuple[str, str]:
    track, _, directory = name.partition("/")
    return track, directory


def _known(transaction: Transaction) -> list[str]:
    """The newest adapters of every track, to choose from."""
    rows = transaction.all("api_adapters", after=2**63 - 1, track=None, limit=200)
    return [f"{row.track}/{row.directory}" for row in rows]
