"""COPY and JSON parameters: what goes in comes out."""

import math
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.core import db
from services.core.db import Database, Transaction
from services.core.target import Target

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
AWKWARD = st.sampled_from(["\\", "\\.", "\\N", "\t", "\n", "\r\n", "\r", "", "\\\\t", "\\n", "é\u2028", "💥"])
STRINGS = st.lists(st.one_of(TEXT, AWKWARD)).map("".join)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), STRINGS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(STRINGS, inner, max_size=3)),
    max_leaves=8,
)
ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), STRINGS),
        st.one_of(st.none(), st.binary()),
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        st.one_of(st.none(), st.booleans()),
        st.one_of(st.none(), st.floats(allow_nan=False)),
        st.one_of(st.lists(JSON, max_size=3), st.dictionaries(STRINGS, JSON, max_size=3)),
    ),
    max_size=8,
)
COLUMNS = ("string", "raw", "whole", "truth", "real", "document")


@pytest.fixture
def table(target: Target) -> str:
    with closing(db.connect(target)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE copied (position serial, string text, raw bytea, whole bigint, truth boolean,"
            " real double precision, document jsonb)"
        )
    return "copied"


def rows_of(transaction: Transaction, table: str) -> list[tuple[object, ...]]:
    transaction._cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM {table} ORDER BY position")
    return [(row[0], row[1] and bytes(row[1]), *row[2:]) for row in transaction._cursor.fetchall()]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_every_value_survives_copy(database: Database, table: str, rows: list[tuple[object, ...]]) -> None:
    """Text with backslashes, tabs and newlines, bytes, numbers, booleans, null and JSON."""
    with database.transaction() as transaction:
        transaction._cursor.execute(f"TRUNCATE {table}")
        transaction.copy(table, COLUMNS, rows)
        expected = [(row[0], row[1] or (b"" if row[1] is not None else None), *row[2:]) for row in rows]
        assert rows_of(transaction, table) == expected


def test_copy_of_many_rows_streams(database: Database, table: str) -> None:
    """A generator larger than any buffer arrives complete and in order."""
    with database.transaction() as transaction:
        transaction.copy(table, ("string",), ((f"{number}\t\\",) for number in range(20_000)))
        transaction._cursor.execute(f"SELECT string FROM {table} ORDER BY position")
        assert [row[0] for row in transaction._cursor] == [f"{number}\t\\" for number in range(20_000)]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_becomes_null(database: Database, table: str, value: float) -> None:
    """jsonb has neither NaN nor infinities; nested ones too become null."""
    with database.transaction() as transaction:
        transaction._cursor.execute(
            f"INSERT INTO {table} (document) VALUES (%s) RETURNING document",
            (db.as_json({"loss": value, "all": [value, 1.5]}),),
        )
        assert transaction._cursor.fetchone()[0] == {"loss": None, "all": [None, 1.5]}
