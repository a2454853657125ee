"""Rounds: a timeline and a table of all, and a page of each while it runs and after."""

from datetime import UTC, datetime
from typing import Annotated, Any

from flask import Blueprint, Response, render_template
from pydantic import Field
from werkzeug.exceptions import NotFound

from services.core.db import Transaction
from services.core.models import Json, RoundState
from services.metrics.api.paging import LARGEST, Absent, Name, Numbered, cut
from services.metrics.api.reader import Reader, found
from services.metrics.document import strict_json
from services.metrics.observer import Observer
from services.metrics.pages import composition, curves, practice, timeline, verdicts
from services.metrics.pages.asked import asked_for
from services.metrics.pages.configuration import differences, settings

TRACKS = 8  # whose timelines are drawn at once
BARS = 48  # rounds in a timeline
ROWS = 40  # of the table on a page
LOG_LINES = 200
SOLUTIONS = 4  # of reinforcement rounds, whose texts are shown
ROUND = "/rounds/<string(minlength=1, maxlength=200):track>/<int(min=1, max=2147483647):number>"


class Asked(Numbered):
    """Which rounds the table shows."""

    track: Name | Absent = None
    state: RoundState | Absent = None


class AskedFigure(Numbered):
    figure: Annotated[str, Field(max_length=40)]


def add(pages: Blueprint, _observer: Observer, reader: Reader) -> None:
    @pages.get("/rounds")
    def rounds() -> str:
        asked = asked_for(Asked)
        return render_template("rounds.html", asked=asked, **reader(lambda tx: _listed(tx, asked)))

    @pages.get(ROUND)
    def round_(track: str, number: int) -> str:
        return render_template("round.html", **reader(lambda tx: _shown(tx, track, number)))

    @pages.get(f"{ROUND}/chart.json")
    def round_chart(track: str, number: int) -> Response:
        """One figure of a round for the chart in the browser: `?figure=loss`."""
        asked = asked_for(AskedFigure)
        figure = curves.BY_NAME.get(asked.figure)
        if figure is None:
            raise NotFound(f"there is no figure {asked.figure!r}: expected {', '.join(curves.BY_NAME)}")

        def read(transaction: Transaction) -> Json:
            row = _round(transaction, track, number)
            points = transaction.all("metrics_curve", round_id=row.id, points=curves.POINTS)
            return curves.as_json(points, figure, practice.roles(row.recipe))

        body = strict_json(reader(read), indent=None)
        return Response(body, content_type="application/json")


def _listed(transaction: Transaction, asked: Asked) -> Json:
    now = datetime.now(UTC)
    tracks = transaction.all("page_tracks", limit=TRACKS)
    drawn = [track.name for track in tracks] if asked.track is None else [asked.track]
    rows = transaction.all("page_timeline", tracks=drawn, limit=BARS)
    listed = transaction.all(
        "page_rounds",
        after=LARGEST if asked.after is None else asked.after,
        track=asked.track,
        state=asked.state,
        limit=ROWS + 1,
    )
    shown, following = cut(listed, ROWS, lambda row: str(row.id))
    return {
        "tracks": tracks,
        "timelines": timeline.timelines(rows, now),
        "rounds": [_row(row, now) for row in shown],
        "next": following,
        "states": list(RoundState),
        "bar_height": timeline.HEIGHT,
    }


def _row(row: Any, now: datetime) -> Json:
    """One line of the table."""
    held_out = (row.rates if row.metric == "rate" else row.bits) or {}
    return {
        **row._asdict(),
        "seconds": ((row.closed_at or now) - row.opened_at).total_seconds(),
        "before": held_out.get(row.against or "base"),
        "after": held_out.get("candidate"),
    }


def _round(transaction: Transaction, track: str, number: int) -> Any:
    row = None if "\0" in track else transaction.one("page_round", track=track, number=number)
    return found(row, f"round {number} of {track!r}")


def _shown(transaction: Transaction, track: str, number: int) -> Json:
    row = _round(transaction, track, number)
    is_open = row.state == RoundState.OPEN
    about = {"round_id": row.id}
    beat = transaction.one("page_beat", track=track) if is_open else None
    curve = transaction.all("metrics_curve", points=curves.POINTS, **about)
    now = datetime.now(UTC)
    return {
        "round": row,
        "is_open": is_open,
        "seconds": ((row.closed_at or now) - row.opened_at).total_seconds(),
        "beat": beat if beat is not None and beat.detail.get("round") == number else None,
        "charts": curves.charts(curve, practice.roles(row.recipe)),
        "team": practice.team(row.recipe),
        "latest": practice.latest(curve),
        "practised_of": composition.practice(transaction.all("api_round_tasks", **about)),
        "practice": transaction.one("page_practice", **about),
        "episodes": practice.episodes(transaction.all("page_episodes", **about)),
        "solutions": transaction.all("page_solutions", limit=SOLUTIONS, **about),
        "made": composition.composition(transaction.all("page_composition", most=composition.DRAWN, **about)),
        "samples": transaction.all("page_samples", **about),
        "verdict_told": verdicts.verdict(row.verdict, row.recipe),
        "held_out": transaction.all("api_held_out", **about),
        "suites": transaction.all("api_suites", **about),
        "settings": settings(row.recipe),
        "differences": None if row.recipe_before is None else differences(row.recipe_before, row.recipe),
        "log": transaction.all("page_log", limit=LOG_LINES, **about)[::-1],
    }
