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
    path: str
    summary: str
    parameters: tuple[Parameter, ...]
    answer: str  # name of the schema


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
    """Every GET, by path."""
    found = []
    for path, methods in sorted(document["paths"].items()):
        described = methods["get"]
        answer = described["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        parameters = tuple(_parameter(each) for each in described["parameters"])
        found.append(Operation(path, described["summary"], parameters, _name(answer)))
    return found


def schemas(document: Json) -> list[Schema]:
    """What is answered, by name; parameters of requests stand with their operations."""
    found = []
    for name, schema in sorted(document["components"]["schemas"].items()):
        if "properties" in schema and schema.get("additionalProperties") is not False:
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
