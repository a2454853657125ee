"""What an address asks a page for: its query, checked."""

from typing import TypeVar

from flask import abort, request
from pydantic import BaseModel, ValidationError

Query = TypeVar("Query", bound=BaseModel)


def asked_for(model: type[Query]) -> Query:
    """The query of this request. Answers 400 with the parameter, its value and what is wrong with it.

    A parameter without a value, as forms send those that were left empty, is as if it were not there.
    """
    given = {name: value for name, value in request.args.items() if value != ""}
    try:
        return model.model_validate(given)
    except ValidationError as exc:
        wrong = exc.errors()[0]
        name = ".".join(map(str, wrong["loc"])) or "the query"
        abort(400, f"{name}={wrong['input']!r} cannot be shown: {wrong['msg']}")
