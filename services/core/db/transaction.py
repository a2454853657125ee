"""A transaction: the queries of sql/queries by name."""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg2
import psycopg2.extras

from services.core import sql
from services.core.db.copying import Rows


class Transaction:
    """One transaction: the queries of sql/queries by name, rows as named tuples."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, query: str, **parameters: Any) -> int:
        """Run the named query; how many rows it touched."""
        self._cursor.execute(sql.queries()[query].text, parameters)
        return int(self._cursor.rowcount)

    def all(self, query: str, **parameters: Any) -> list[Any]:
        self.execute(query, **parameters)
        return list(self._cursor.fetchall())

    def one(self, query: str, **parameters: Any) -> Any:
        """The first row, or None."""
        self.execute(query, **parameters)
        return self._cursor.fetchone()

    def value(self, query: str, **parameters: Any) -> Any:
        """The first column of the first row, or None."""
        row = self.one(query, **parameters)
        return None if row is None else row[0]

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """COPY rows into a table: str, int, float, bool, bytes, None, and dict or list as JSON."""
        names = ", ".join(columns)
        reader = Rows(rows)
        try:
            self._cursor.copy_expert(f"COPY {table} ({names}) FROM STDIN", reader)
        except psycopg2.Error as exc:
            if reader.failure is not None:  # it broke off because of the rows, not of the server
                raise reader.failure from exc
            raise


def as_json(value: Any) -> Any:
    """A parameter for a jsonb column. NaN and infinities become null: jsonb has none."""
    return psycopg2.extras.Json(value, dumps=lambda data: json.dumps(_finite(data), allow_nan=False))


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
