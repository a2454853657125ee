"""Migrations: each applied once, in order, as it was written."""

import hashlib
from typing import Any

import psycopg2
import psycopg2.extensions

from services.core import sql
from services.core.db.connection import LOST, connect, first_line, lost
from services.core.db.transaction import Transaction
from services.core.errors import MigrationError
from services.core.target import Target

MIGRATION_LOCK = 0x52415443  # "RATC", one migrator at a time


def migrate(target: Target, role_passwords: dict[str, str] | None = None) -> list[str]:
    """Apply what sql/migrations has beyond what the database has recorded; their names.

    Safe when several services start at once: they queue on an advisory lock. `role_passwords`
    gives each service's role a login. Raises MigrationError when a migration fails (nothing of it
    stays) or an applied one was edited since, DatabaseUnavailableError when PostgreSQL ends meanwhile.
    """
    connection = connect(target, "ratchet migrate")
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            cursor.execute(
                "CREATE TABLE IF NOT EXISTS schema_migrations"
                " (version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,"
                " applied_at timestamptz NOT NULL DEFAULT now())"
            )
            cursor.execute("SELECT version, checksum FROM schema_migrations")
            recorded = dict(cursor.fetchall())
            applied = [
                migration.name for migration in sql.migrations() if _apply(cursor, migration, recorded)
            ]
            for role, password in (role_passwords or {}).items():
                identifier = psycopg2.extensions.quote_ident(role, cursor)
                cursor.execute(f"ALTER ROLE {identifier} LOGIN PASSWORD %s", (password,))
            return applied
    except LOST as exc:
        raise lost(target, exc) from exc
    finally:
        connection.close()


def _apply(cursor: Any, migration: sql.Migration, recorded: dict[int, str]) -> bool:
    checksum = hashlib.sha256(migration.text.encode()).hexdigest()
    label = f"{migration.version:04}_{migration.name}"
    if migration.version in recorded:
        if recorded[migration.version] != checksum:
            raise MigrationError(f"migration {label} was edited after it was applied: add a new one instead")
        return False
    try:
        cursor.execute(migration.text)
    except psycopg2.Error as exc:
        raise MigrationError(
            f"migration {label} failed, nothing of it was applied: {first_line(exc)}"
        ) from exc
    cursor.execute(
        "INSERT INTO schema_migrations (version, name, checksum) VALUES (%s, %s, %s)",
        (migration.version, migration.name, checksum),
    )
    return True


def is_migrated(transaction: Transaction) -> bool:
    """Whether every migration this code knows is recorded in the database."""
    if not transaction.value("has_schema"):
        return False
    return int(transaction.value("newest_migration")) >= len(sql.migrations())
