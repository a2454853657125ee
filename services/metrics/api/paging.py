"""Pages by key: `after` is the key of the last row seen, so that no page costs more than its rows."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

Absent = SkipJsonSchema[None]
LARGEST = 2**63 - 1  # a bigint
MOST, USUAL = 500, 50  # rows a page


def _absent_is_not_null(schema: dict[str, Any]) -> None:
    """A parameter that may be left out has no null that could be sent."""
    for described in schema.get("properties", {}).values():
        if "default" in described and described["default"] is None:
            del described["default"]


Name = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00]+$")]  # PostgreSQL holds no NUL


class Query(BaseModel):
    """Parameters of a list; what is not listed is refused by name."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_absent_is_not_null)

    limit: int = Field(USUAL, ge=1, le=MOST, description="rows at most")


class Numbered(Query):
    """A list in the order of an id."""

    after: Annotated[int, Field(ge=0, le=LARGEST)] | Absent = Field(
        None, description="`next` of the page before"
    )


def cut(rows: Sequence[Any], limit: int, key: Callable[[Any], str]) -> tuple[Sequence[Any], str | None]:
    """The rows of one page, of which one more than `limit` were asked for, and the key to go on from."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], key(rows[limit - 1])
