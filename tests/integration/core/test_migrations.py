"""Migrations: once each, in order, all or nothing."""

import dataclasses
from contextlib import closing

import psycopg2
import pytest

from services.core import db, sql
from services.core.errors import DatabaseUnavailableError, MigrationError
from services.core.target import Target


def tables(target: Target) -> set[str]:
    with closing(db.connect(target)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {row[0] for row in cursor.fetchall()}


def test_a_migrated_database_says_so(target: Target, empty_target: Target) -> None:
    """`is_migrated` is true after, false before."""
    answers = []
    for where in (target, empty_target):
        database = db.Database(where)
        answers.append(database.run(db.is_migrated))
        database.close()
    assert answers == [True, False]


def test_an_edited_migration_is_refused(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was applied may not change afterwards."""
    first, *rest = sql.migrations()
    edited = dataclasses.replace(first, text=first.text + "\n-- edited")
    monkeypatch.setattr(sql, "migrations", lambda: [edited, *rest])
    with pytest.raises(MigrationError, match="0001_ledger was edited"):
        db.migrate(target)


def test_a_failing_migration_leaves_nothing(empty_target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its own statements nor those of the migrations before it in the same run stay."""
    known = sql.migrations()
    broken = sql.Migration(len(known) + 1, "broken", "CREATE TABLE half (id integer); SELECT 1/0;")
    monkeypatch.setattr(sql, "migrations", lambda: [*known, broken])
    with pytest.raises(MigrationError, match=r"_broken failed.*division by zero"):
        db.migrate(empty_target)
    assert tables(empty_target) == set()


def test_a_server_that_ends_meanwhile_is_no_driver_error(
    empty_target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: the whole of it is one line that names the server."""

    def is_ended() -> list[sql.Migration]:
        raise psycopg2.OperationalError("server closed the connection unexpectedly\nand more")

    monkeypatch.setattr(sql, "migrations", is_ended)
    with pytest.raises(DatabaseUnavailableError, match="server closed the connection"):
        db.migrate(empty_target)


def test_a_new_migration_is_added_to_the_old(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is new is applied."""
    known = sql.migrations()
    new = sql.Migration(len(known) + 1, "new", "CREATE TABLE brand_new (id integer);")
    monkeypatch.setattr(sql, "migrations", lambda: [*known, new])
    assert db.migrate(target) == ["new"]
    assert "brand_new" in tables(target)
