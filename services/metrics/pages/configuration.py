"""Recipes side by side: what two rounds were told differently."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MISSING = "not there"  # a field that one of two versions does not know


@dataclass(frozen=True)
class Setting:
    name: str  # of nested fields with a dot between: language_weights.rust
    value: str


@dataclass(frozen=True)
class Difference:
    name: str
    before: str
    after: str


def settings(recipe: Mapping[str, Any]) -> list[Setting]:
    """Every field in words, by name."""
    return [Setting(name, said(value)) for name, value in sorted(_flat(recipe).items())]


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """The fields that are not the same, by name."""
    old, new = _flat(before), _flat(after)
    return [
        Difference(name, _said_or_missing(old, name), _said_or_missing(new, name))
        for name in sorted(old.keys() | new.keys())
        if name not in old or name not in new or old[name] != new[name]
    ]


def said(value: Any) -> str:
    """0.0002 → 0.0002, true → yes, null → none, [1, 2] → 1, 2."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case str():
            return value
        case list():
            return ", ".join(map(said, value)) or "none"
        case _:
            return json.dumps(value)


def _said_or_missing(fields: Mapping[str, Any], name: str) -> str:
    return said(fields[name]) if name in fields else MISSING


def _flat(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping) and value:
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
