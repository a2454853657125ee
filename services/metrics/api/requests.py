"""Ask a track's trainer for something, as who knows the token, and read what became of it."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Annotated, Any, TypeVar

from flask import Blueprint, request
from pydantic import BaseModel, ConfigDict, Field
from spectree import SpecTree
from werkzeug.datastructures import WWWAuthenticate
from werkzeug.exceptions import Forbidden, TooManyRequests, Unauthorized

from services.core.models import RequestKind, RequestState
from services.metrics.api import models
from services.metrics.api.paging import LARGEST, Absent, Name, Numbered, cut
from services.metrics.api.reader import Reader, found
from services.metrics.api.spec import answers
from services.metrics.writes import asking, origin
from services.metrics.writes.access import Access, Answer
from services.metrics.writes.asking import Wish

View = TypeVar("View", bound=Callable[..., Any])

Words = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00]+$")]
HOW_TO_OPEN = (
    "nothing can be changed here: set DASHBOARD_TOKEN to 24 or more random characters (`make env` does) and"
    " start the metrics service again"
)


class NewRequest(BaseModel):
    """What is asked of a track's trainer."""

    model_config = ConfigDict(extra="forbid")

    kind: RequestKind = Field(description="promote and reject need `adapter`, forget needs `target`")
    track: Name = Field(description="a recipe's name")
    adapter: Name | Absent = Field(None, description="as round-0003; of rollback also `base`")
    target: Name | Absent = Field(None, description="a source, or SOURCE/path of a folder or file of it")
    reason: Words | Absent = Field(None, description="for the record")
    actor: Annotated[str, Field(max_length=100, pattern=r"^[^\x00]+$")] = Field(
        "api", description="for the record: on whose behalf"
    )
    key: Annotated[str, Field(max_length=200, pattern=r"^[^\x00]+$")] | Absent = Field(
        None, description="of your choice: asking again with it changes nothing and answers the same request"
    )

    def wish(self) -> Wish:
        return Wish(**self.model_dump())


class Request(models.Answer):
    """What was asked, and what came of it."""

    id: int
    kind: RequestKind
    track: str
    adapter: str | None
    target: str | None
    reason: str | None
    actor: str
    state: RequestState
    message: str | None = Field(description="what came of it, or why it was refused; null while it waits")
    asked_at: datetime
    done_at: datetime | None
    expires_at: datetime = Field(description="what no trainer took up until then is refused")


class Requests(models.Page):
    items: list[Request]


class RequestsQuery(Numbered):
    track: Name | Absent = Field(None, description="a recipe's name")
    state: RequestState | Absent = None


def add_requests(api: Blueprint, spec: SpecTree, reader: Reader, access: Access) -> None:
    @api.get("/requests")
    @spec.validate(resp=answers(Requests), tags=["requests"])
    def requests(query: RequestsQuery) -> Requests:
        """What people asked of trainers, the newest first."""
        before = LARGEST if query.after is None else query.after
        given = {"track": query.track, "state": query.state}
        rows = reader.all("requests_before", before=before, limit=query.limit + 1, **given)
        shown, following = cut(rows, query.limit, lambda row: str(row.id))
        items = [Request.model_validate(asking.Asked.of(row)) for row in shown]
        return Requests(items=items, next=following)

    @api.get(f"/requests/<int(min=1, max={LARGEST}):number>")
    @spec.validate(resp=answers(Request, 404), tags=["requests"])
    def request_(number: int) -> Request:
        """One request, and what came of it."""
        return Request.model_validate(found(asking.find(reader, number), f"request {number}"))

    @api.post("/requests")
    @bearer_only(access)
    @spec.validate(
        resp=answers(Request, 401, 403, 404, 409, 429, success=202), tags=["requests"], security={"token": []}
    )
    def ask(json: NewRequest) -> tuple[Request, int, dict[str, str]]:
        """Ask a track's trainer for something; its answer is in the request a second later, if it runs."""
        asked = asking.ask(reader, json.wish())
        return Request.model_validate(asked), 202, {"Location": f"{api.url_prefix}/requests/{asked.id}"}


def bearer_only(access: Access) -> Callable[[View], View]:
    """Lets in who says `Authorization: Bearer TOKEN`; others are told why not before anything is done."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(*args: Any, **parameters: Any) -> Any:
            refuse_foreign()
            if not access.is_open:
                raise Forbidden(HOW_TO_OPEN)
            said = request.authorization
            if said is None or said.type != "bearer" or not said.token:
                raise _unauthorized("Authorization: Bearer and the DASHBOARD_TOKEN is expected")
            match access.guess(said.token, address()):
                case Answer.WRONG:
                    raise _unauthorized("this is not the DASHBOARD_TOKEN")
                case Answer.WAIT:
                    raise too_many(access)
            return view(*args, **parameters)

        return guarded  # type: ignore[return-value]  # it takes and gives what the view does

    return decorate


def refuse_foreign() -> None:
    """Answers 403 to a request that another site's page has made a browser send."""
    if (why := origin.foreign(request.headers, request.host)) is not None:
        raise Forbidden(f"another site sent this ({why}): nothing was changed")


def address() -> str:
    return request.remote_addr or "unknown"


def too_many(access: Access) -> TooManyRequests:
    seconds = access.wait(address())
    return TooManyRequests(f"too many wrong tokens: try again in {seconds} s", retry_after=seconds)


def _unauthorized(why: str) -> Unauthorized:
    return Unauthorized(why, www_authenticate=WWWAuthenticate("bearer", {"realm": "ratchet"}))
