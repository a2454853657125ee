"""Values as tagged JSON: exact plain types and nothing else cross between a program and its checker.

None, booleans, strings, finite floats and integers of 53 bits are themselves and a list is an array; all
else is an object with one member, whose name is the type: `{"tuple": […]}`, `{"dict": [[key, value], …]}`.
What is decoded can hold no behaviour of the sender's: no subclass, no method, no `__eq__`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` would double what a cage takes to start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Encoded = Any  # what json.dumps takes and json.loads gives

INFINITE = float("inf")
EXACT = 2**53  # JSON readers agree on integers below
SEQUENCES: dict[type, str] = {tuple: "tuple", set: "set", frozenset: "frozenset"}


class NotPlainError(TypeError):
    """A value of a type that does not cross; its message is the name of the type."""


def _refuse(value: object) -> object:
    raise NotPlainError(type(value).__name__)


def encode(  # noqa: PLR0911 (one for each type)
    value: object, other: Callable[[object], object] = _refuse
) -> Encoded:
    """The value as what `json.dumps` takes.

    `other` is asked for a stand-in for each part that is not exactly of a plain type.
    Raises NotPlainError for such a part, RecursionError for a value that holds itself.
    """
    kind: Any = type(value)
    parts: Any = value
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -EXACT < parts < EXACT else {"int": hex(parts)}
    if kind is float:
        return parts if abs(parts) < INFINITE else {"float": repr(parts)}
    if kind is list:
        return [encode(part, other) for part in parts]
    if kind in SEQUENCES:
        return {SEQUENCES[kind]: [encode(part, other) for part in parts]}
    if kind is dict:
        return {"dict": [[encode(key, other), encode(part, other)] for key, part in parts.items()]}
    if kind is bytes:
        return {"bytes": parts.hex()}
    if kind is complex:
        return {"complex": [encode(parts.real), encode(parts.imag)]}
    if kind is Drained:
        return {"iterator": [encode(part, other) for part in parts.items]}
    return encode(other(value), other)


class Drained:
    """What an iterator gave, all of it: decoded, it is an iterator again."""

    def __init__(self, items: list[object]) -> None:
        self.items = items


def decode(encoded: Encoded) -> Any:
    """The value, of exact plain types; raises ValueError for what `encode` cannot have made."""
    if encoded is None or type(encoded) in (bool, int, float, str):
        return encoded
    if type(encoded) is list:
        return [decode(part) for part in encoded]
    if type(encoded) is not dict or len(encoded) != 1:
        raise ValueError("neither a plain value nor one with one tag")
    ((tag, inner),) = encoded.items()
    if tag not in DECODERS:
        raise ValueError(f"unknown tag {tag!r}")
    try:
        return DECODERS[tag](inner)
    except (
        TypeError,
        AttributeError,
        KeyError,
    ) as exc:  # a key that has no hash, a tag around the wrong thing
        raise ValueError(f"{tag}: {exc}") from exc


def _parts(inner: Encoded) -> list[Any]:
    if type(inner) is not list:
        raise ValueError("expected an array")
    return [decode(part) for part in inner]


def _complex(inner: Encoded) -> complex:
    real, imaginary = _parts(inner)
    return complex(real, imaginary)


def _iterator(inner: Encoded) -> Iterator[Any]:
    return iter(_parts(inner))


DECODERS: dict[str, Callable[[Encoded], Any]] = {
    "int": lambda inner: int(inner, 16),  # no limit on digits in a base that is a power of two
    "float": lambda inner: float({"nan": "nan", "inf": "inf", "-inf": "-inf"}[inner]),
    "tuple": lambda inner: tuple(_parts(inner)),
    "set": lambda inner: set(_parts(inner)),
    "frozenset": lambda inner: frozenset(_parts(inner)),
    "dict": lambda inner: {decode(key): decode(part) for key, part in inner},
    "bytes": bytes.fromhex,
    "complex": _complex,
    "iterator": _iterator,
}
