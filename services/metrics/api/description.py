"""The OpenAPI document put into words: rows for the page /api and for docs/reference/api.md."""

from dataclasses import dataclass

from services.core.models import Json

WORDS = {"integer": "whole number", "boolean": "true or false", "string": "text"}


@dataclass(frozen=True)
class Parameter:
    name: str
    place: str  # path or query
    type: str
    limits: str
    text: str


@dataclass(frozen=True)
class Operation:
    method: str  # GET or POST
    path: str
    summary: str
    parameters: tuple[Parameter, ...]
    answer: str  # name of the schema, or the media type of what has none
    body: str | None = None  # name of the schema of what is sent
    needs_token: bool = False


@dataclass(frozen=True)
class Member:
    name: str
    type: str
    text: str


@dataclass(frozen=True)
class Schema:
    name: str
    members: tuple[Member, ...]


def operations(document: Json) -> list[Operation]:
    """Every operation, by path."""
    return [
        _operation(path, method, described)
        for path, methods in sorted(document["paths"].items())
        for method, described in sorted(methods.items())
    ]


def _operation(path: str, method: str, described: Json) -> Operation:
    (success,) = (code for code in described["responses"] if code.startswith("2"))
    ((media, answer),) = described["responses"][success]["content"].items()
    sent = described.get("requestBody", {}).get("content", {}).get("application/json")
    return Operation(
        method=method.upper(),
        path=path,
        summary=described["summary"],
        parameters=tuple(_parameter(each) for each in described.get("parameters", [])),
        answer=_name(answer["schema"]["$ref"]) if "$ref" in answer["schema"] else media,
        body=None if sent is None else _name(sent["schema"]["$ref"]),
        needs_token=bool(described.get("security")),
    )


def schemas(document: Json) -> list[Schema]:
    """What is answered or sent, by name; parameters stand with their operations."""
    found, sent = [], {each.body for each in operations(document)}
    for name, schema in sorted(document["components"]["schemas"].items()):
        if "properties" in schema and (name in sent or schema.get("additionalProperties") is not False):
            members = [
                Member(member, _type(each), each.get("description", ""))
                for member, each in schema["properties"].items()
            ]
            found.append(Schema(name, tuple(members)))
    return found


def _parameter(described: Json) -> Parameter:
    schema = described["schema"]
    signs = (("minimum", "≥"), ("maximum", "≤"), ("minLength", "length ≥"), ("maxLength", "length ≤"))
    limits = [f"{sign} {schema[key]}" for key, sign in signs if key in schema]
    if "default" in schema:
        limits.append(f"default {schema['default']}")
    return Parameter(
        described["name"], described["in"], _type(schema), ", ".join(limits), described.get("description", "")
    )


def _type(schema: Json) -> str:
    """In a word or two: number, text or null, list of Round."""
    match schema:
        case {"$ref": reference}:
            return _name(reference)
        case {"anyOf": several}:
            return " or ".join(_type(each) for each in several)
        case {"enum": values}:
            return " or ".join(map(str, values))
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case {"format": "date-time"}:
            return "time"
        case _:
            kind = str(schema.get("type", "anything"))
            return WORDS.get(kind, kind)


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]
