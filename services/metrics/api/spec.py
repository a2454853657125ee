"""The OpenAPI document that is made from the routes, and how requests that do not fit it are refused."""

from typing import Any

from pydantic import ValidationError
from spectree import Response as Answers
from spectree import SecurityScheme, SpecTree
from spectree.models import SecureType, SecuritySchemeData
from werkzeug.exceptions import UnprocessableEntity

from services.core.models import Json
from services.metrics.api import models

TEXT = (
    "What a Ratchet has read, trained, judged and published. Whatever changes something is asked of a track's"
    " trainer by a POST to /api/v1/requests."
)
TOKEN = SecuritySchemeData(
    type=SecureType.HTTP, scheme="bearer", description="the DASHBOARD_TOKEN of the metrics service"
)


def make_spec() -> SpecTree:
    return SpecTree(
        "flask",
        title="Ratchet",
        description=TEXT,
        version="1",
        path="openapi",
        page_templates={},
        mode="strict",
        annotations=True,
        nested_naming_strategy=lambda _parent, child: child,
        naming_strategy=lambda model: model.__name__,
        validation_error_model=models.Problem,
        security_schemes=[SecurityScheme(name="token", data=TOKEN)],
        before=_refuse,
    )


def answers(model: Any, *more: int, success: int = 200) -> Answers:
    """The codes of a route: what it gives, 422, 503 and those named, which are problems."""
    problems = {f"HTTP_{code}": models.Problem for code in (422, 503, *more)}
    return Answers(**{f"HTTP_{success}": model}, **problems)


def stream(path: str) -> Json:
    """The path of the event stream, which no model describes."""
    problem = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    last = {
        "name": "Last-Event-ID",
        "in": "header",
        "required": False,
        "schema": {"type": "string", "pattern": "^[0-9]{1,18}$"},
        "description": "id of the last event that was seen: those after it come first",
    }
    described = {
        "summary": "Events as they happen, and small figures when they change: docs/how-to/steer.md.",
        "operationId": "get_stream",
        "tags": ["events"],
        "parameters": [last],
        "responses": {
            "200": {"description": "OK", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
            "422": {"description": "Unprocessable Content", "content": problem},
            "503": {"description": "Service Unavailable", "content": problem},
        },
    }
    return {path: {"get": described}}


def _refuse(_request: Any, _response: Any, error: Exception | None, *_: Any) -> None:
    """Every parameter that is wrong, by name, with what it was and what it may be."""
    if isinstance(error, ValidationError):
        wrong = [
            f"{each['loc'][0] if each['loc'] else 'the body'}={each['input']!r}: {each['msg']}"
            for each in error.errors(include_url=False)
            if each["type"] != "none_required"  # of what may be left out
        ]
        raise UnprocessableEntity("; ".join(wrong))
