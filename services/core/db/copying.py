"""Rows as COPY reads them: PostgreSQL's text format, one buffer at a time."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any


class Rows:
    """A file of rows: str, int, float, bool, bytes, None, and dict or list as JSON."""

    def __init__(self, rows: Iterable[Sequence[Any]]) -> None:
        self._lines = map(_line, rows)
        self._rest = b""
        self.failure: Exception | None = None  # raised by the rows

    def read(self, size: int = -1) -> bytes:
        try:
            return self._read(size)
        except Exception as exc:
            self.failure = exc
            raise

    def _read(self, size: int) -> bytes:
        parts, length = [self._rest], len(self._rest)
        while (size < 0 or length < size) and (line := next(self._lines, b"")):
            parts.append(line)
            length += len(line)
        data = b"".join(parts)
        if size < 0:
            size = len(data)
        self._rest = data[size:]
        return data[:size]


def _escaped(text: str) -> str:
    """Four passes at the speed of memchr: `str.translate` takes thirty times as long."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _json(value: dict[str, Any] | list[Any]) -> str:
    return _escaped(json.dumps(value))


_FIELD: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "\\N",
    bool: lambda value: "t" if value else "f",
    int: str,
    str: _escaped,
    bytes: lambda value: "\\\\x" + value.hex(),
    dict: _json,
    list: _json,
}


def _line(row: Sequence[Any]) -> bytes:
    fields = [_FIELD.get(type(value), _else)(value) for value in row]
    return ("\t".join(fields) + "\n").encode()


def _else(value: Any) -> str:
    """Enumerations, numbers of other kinds."""
    return _escaped(str(value))
