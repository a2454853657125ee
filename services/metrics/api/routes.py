"""The routes below /api/v1 that read."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from flask import Blueprint, Flask, Response, jsonify, render_template
from pydantic import Field
from spectree import SpecTree
from werkzeug.exceptions import ServiceUnavailable

from services.core.db import Transaction
from services.core.models import RoundState
from services.metrics.api import models
from services.metrics.api.description import operations, schemas
from services.metrics.api.paging import LARGEST, Absent, Name, Numbered, Query, cut
from services.metrics.api.reader import Reader, found
from services.metrics.api.requests import add_requests
from services.metrics.api.spec import answers, make_spec, stream
from services.metrics.api.state import add_state
from services.metrics.observer import Observer
from services.metrics.writes.access import Access

Listed = TypeVar("Listed", bound=models.Page)

PREFIX = "/api/v1"
Score = Annotated[int, Field(ge=0, le=100)]
Number = "<int(min=1, max=2147483647):number>"
Track = "<string(minlength=1, maxlength=200):track>"
Sha256 = "<string(length=64):sha256>"


class OfTrack(Numbered):
    track: Name | Absent = Field(None, description="a recipe's name")


class RoundsQuery(OfTrack):
    state: RoundState | Absent = None


class RejectionsQuery(Numbered):
    reason: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")] | Absent = None
    source: Name | Absent = None


class ContentsQuery(Query):
    min_score: Score = 0
    max_score: Score = 100
    language: Name | Absent = None
    after: Annotated[str, Field(pattern=r"^(100|[1-9]?[0-9])\.[0-9]{1,18}$")] | Absent = Field(
        None, description="`next` of the page before"
    )


class EventsQuery(OfTrack):
    kind: Annotated[str, Field(pattern=r"^[a-z]+\.[a-z_]+$", max_length=64)] | Absent = None


class CurveQuery(Query):
    limit: int = Field(200, ge=2, le=2000, description="points of each kind at most, evenly thinned")


def add_api(app: Flask, observer: Observer, reader: Reader, access: Access) -> None:
    """Add the routes, /api/v1/openapi.json, which describes them, and /api, which tells it to people."""
    api, spec = Blueprint("api", __name__, url_prefix=PREFIX), make_spec()

    @api.before_request
    def ready() -> None:
        if (why := observer.not_ready()) is not None:
            raise ServiceUnavailable(why)

    _add_ingest(api, spec, reader)
    _add_rounds(api, spec, reader)
    _add_adapters(api, spec, reader)
    add_requests(api, spec, reader, access)
    add_state(api, spec, observer)
    app.register_blueprint(api)
    with app.app_context():
        described = spec.spec
    described["paths"].update(stream(f"{PREFIX}/stream"))
    app.extensions["openapi"] = described

    @app.get(f"{PREFIX}/openapi.json")
    def openapi() -> Response:
        return jsonify(described)

    @app.get("/api")
    def told() -> str:
        return render_template("api.html", operations=operations(described), schemas=schemas(described))


def _add_ingest(api: Blueprint, spec: SpecTree, reader: Reader) -> None:
    @api.get("/sources")
    @spec.validate(resp=answers(models.Sources), tags=["ingest"])
    def sources(query: Numbered) -> models.Sources:
        """The repositories and archives of the ingest volume."""
        rows = reader.all("api_sources", after=query.after or 0, limit=query.limit + 1)
        return _page(models.Sources, rows, query.limit)

    @api.get("/rejections")
    @spec.validate(resp=answers(models.Rejections), tags=["ingest"])
    def rejections(query: RejectionsQuery) -> models.Rejections:
        """The files that were refused, each with its reason."""
        rows = reader.all(
            "api_rejections",
            after=query.after or 0,
            limit=query.limit + 1,
            reason=query.reason,
            source=query.source,
        )
        return _page(models.Rejections, rows, query.limit)

    @api.get("/contents")
    @spec.validate(resp=answers(models.Contents), tags=["ingest"])
    def contents(query: ContentsQuery) -> models.Contents:
        """The texts that were stored, the best first; never the text itself."""
        score, _, number = (query.after or "101.0").partition(".")
        rows = reader.all(
            "api_contents",
            after_score=int(score),
            after_id=int(number),
            limit=query.limit + 1,
            min_score=query.min_score,
            max_score=query.max_score,
            language=query.language,
        )
        return _page(models.Contents, rows, query.limit, lambda row: f"{row.score}.{row.id}")

    @api.get(f"/contents/{Sha256}")
    @spec.validate(resp=answers(models.ContentDetail, 404), tags=["ingest"])
    def content(sha256: str) -> models.ContentDetail:
        """One text: its score and why, where it is, its units, the rounds that had it."""
        wanted = sha256 if all(letter in "0123456789abcdef" for letter in sha256) else ""

        def read(transaction: Transaction) -> dict[str, Any]:
            row = transaction.one("api_content", sha256=wanted)
            row = found(row, f"content {sha256!r}: a SHA-256 in 64 small hexadecimal digits is expected")
            parts = {"places": "api_places", "units": "api_units", "used": "api_uses"}
            lists = {name: transaction.all(query, content_id=row.id) for name, query in parts.items()}
            return {**row._asdict(), **lists}

        return models.ContentDetail.model_validate(reader(read))


def _add_rounds(api: Blueprint, spec: SpecTree, reader: Reader) -> None:
    @api.get("/rounds")
    @spec.validate(resp=answers(models.Rounds), tags=["rounds"])
    def rounds(query: RoundsQuery) -> models.Rounds:
        """Rounds, the newest first."""
        rows = reader.all(
            "api_rounds",
            after=_before(query),
            limit=query.limit + 1,
            track=query.track,
            state=query.state,
        )
        return _page(models.Rounds, rows, query.limit)

    @api.get(f"/rounds/{Track}/{Number}")
    @spec.validate(resp=answers(models.RoundDetail, 404), tags=["rounds"])
    def round_(track: str, number: int) -> models.RoundDetail:
        """One round: what it trained on, its recipe, figures and verdict."""

        def read(transaction: Transaction) -> dict[str, Any]:
            row = _round(transaction, track, number)
            roles = transaction.all("api_composition", round_id=row.id)
            return {
                **row._asdict(),
                "contents": {each.role: each.contents for each in roles},
                "tasks": transaction.all("api_round_tasks", round_id=row.id),
                "solutions": transaction.value("api_solutions", round_id=row.id),
            }

        return models.RoundDetail.model_validate(reader(read))

    @api.get(f"/rounds/{Track}/{Number}/losses")
    @spec.validate(resp=answers(models.Losses, 404), tags=["rounds"])
    def losses(track: str, number: int, query: CurveQuery) -> models.Losses:
        """What the round logged: losses, rates, speed; of a long one evenly thinned points."""

        def read(transaction: Transaction) -> list[dict[str, Any]]:
            row = _round(transaction, track, number)
            points = transaction.all("metrics_curve", round_id=row.id, points=query.limit)
            return [_point(each) for each in points]

        return models.Losses.model_validate({"track": track, "round": number, "points": reader(read)})

    @api.get(f"/rounds/{Track}/{Number}/evaluations")
    @spec.validate(resp=answers(models.Evaluations, 404), tags=["rounds"])
    def evaluations(track: str, number: int) -> models.Evaluations:
        """Held-out bits per byte and every suite, of base, champion and candidate."""

        def read(transaction: Transaction) -> tuple[list[Any], list[Any]]:
            row = _round(transaction, track, number)
            held_out, suites = (
                transaction.all(query, round_id=row.id) for query in ("api_held_out", "api_suites")
            )
            return held_out, suites

        held_out, suites = reader(read)
        return models.Evaluations.model_validate(
            {"track": track, "round": number, "held_out": held_out, "suites": suites}
        )


def _add_adapters(api: Blueprint, spec: SpecTree, reader: Reader) -> None:
    @api.get("/adapters")
    @spec.validate(resp=answers(models.Adapters), tags=["adapters"])
    def adapters(query: OfTrack) -> models.Adapters:
        """Published adapters, the newest first, and which of them are champions."""
        rows = reader.all("api_adapters", after=_before(query), limit=query.limit + 1, track=query.track)
        return _page(models.Adapters, rows, query.limit)

    @api.get("/promotions")
    @spec.validate(resp=answers(models.Promotions), tags=["adapters"])
    def promotions(query: OfTrack) -> models.Promotions:
        """Every move of a champion, the newest first: who made it, and why."""
        rows = reader.all("api_promotions", after=_before(query), limit=query.limit + 1, track=query.track)
        return _page(models.Promotions, rows, query.limit)

    @api.get("/events")
    @spec.validate(resp=answers(models.Events), tags=["events"])
    def events(query: EventsQuery) -> models.Events:
        """What happened, the oldest first: who has read up to an id has missed nothing below it."""
        rows = reader.all(
            "api_events",
            after=query.after or 0,
            limit=query.limit + 1,
            track=query.track,
            kind=query.kind,
        )
        return _page(models.Events, rows, query.limit)


def _point(row: Any) -> dict[str, Any]:
    """Of a team, what each of its agents did apart from the rest."""
    figures = dict(row.metrics)
    roles = figures.pop("roles", None)
    return {**row._asdict(), "metrics": figures, "roles": roles if isinstance(roles, dict) else {}}


def _round(transaction: Transaction, track: str, number: int) -> Any:
    row = None if "\0" in track else transaction.one("api_round", track=track, number=number)
    return found(row, f"round {number} of {track!r}")


def _before(query: Numbered) -> int:
    """Lists that show the newest first go on below the key."""
    return LARGEST if query.after is None else query.after


def _id(row: Any) -> str:
    return str(row.id)


def _page(model: type[Listed], rows: Sequence[Any], limit: int, key: Callable[[Any], str] = _id) -> Listed:
    shown, following = cut(rows, limit, key)
    return model.model_validate({"items": shown, "next": following})
