"""One connection: how it is opened, whether it still lives, and what is said when it does not."""

from typing import Any

import psycopg2
import psycopg2.extras

from services.core.errors import DatabaseUnavailableError
from services.core.target import Target

CONNECT_TIMEOUT = 5  # seconds
STATEMENT_TIMEOUT = 120_000  # milliseconds; no query of ours may take longer
LOST = (psycopg2.OperationalError, psycopg2.InterfaceError)  # what the driver raises when the server is away


def connect(target: Target, application: str = "ratchet") -> Any:
    """A connection; raises DatabaseUnavailableError that says what to look at."""
    try:
        return psycopg2.connect(
            host=target.host,
            port=target.port,
            dbname=target.dbname,
            user=target.user,
            password=target.password.get_secret_value(),
            application_name=application,
            connect_timeout=CONNECT_TIMEOUT,
            keepalives_idle=30,
            tcp_user_timeout=10_000,  # milliseconds; a half-open connection does not hang for ever
            options=f"-c statement_timeout={STATEMENT_TIMEOUT} -c timezone=UTC",
            cursor_factory=psycopg2.extras.NamedTupleCursor,
        )
    except psycopg2.OperationalError as exc:
        wrong_login = "password authentication failed" in str(exc)
        advice = (
            "check POSTGRES_USER and POSTGRES_PASSWORD"
            if wrong_login
            else "is it running, and is this its address?"
        )
        raise DatabaseUnavailableError(
            f"cannot log in to PostgreSQL at {target}: {first_line(exc)}; {advice}"
        ) from exc


def lost(target: Target, exc: BaseException) -> DatabaseUnavailableError:
    """What to raise of one of LOST."""
    return DatabaseUnavailableError(f"lost PostgreSQL at {target}: {first_line(exc)}")


def lives(connection: Any) -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        connection.rollback()
    except psycopg2.Error:
        return False
    return True


def rolled_back(connection: Any) -> bool:
    try:
        connection.rollback()
    except psycopg2.Error:
        return False
    return True


def first_line(exc: BaseException) -> str:
    lines = str(exc).strip().splitlines()
    return lines[0] if lines else type(exc).__name__
