"""PostgreSQL: a pool that waits and heals, transactions over named queries, migrations.

The only module that imports the driver. A caller never sees a driver's connection error: it is
a DatabaseUnavailableError, which `Database.run` retries with exponential backoff.
"""

import hashlib
import json
import logging
import math
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg2
import psycopg2.errorcodes
import psycopg2.extensions
import psycopg2.extras
import tenacity

from services.core import sql
from services.core.errors import DatabaseUnavailableError, MigrationError
from services.core.settings import Target

log = logging.getLogger(__name__)
Result = TypeVar("Result")

CONNECT_TIMEOUT = 5  # seconds
CHECK_AFTER = 1.0  # seconds a connection may lie idle before it is asked whether it still lives
WAIT_FOR_CONNECTION = 30.0  # seconds a caller waits for a free connection
STATEMENT_TIMEOUT = 120_000  # milliseconds; no query of ours may take longer
BACKOFF_FIRST, BACKOFF_MAX = 0.5, 30.0  # seconds
MIGRATION_LOCK = 0x52415443  # "RATC", one migrator at a time
WRONG_LOGIN = (psycopg2.errorcodes.INVALID_PASSWORD, psycopg2.errorcodes.INVALID_AUTHORIZATION_SPECIFICATION)


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
        reader = _Reader(map(_copy_line, rows))
        try:
            self._cursor.copy_expert(f"COPY {table} ({names}) FROM STDIN", reader)
        except psycopg2.Error as exc:
            if reader.failure is not None:  # it broke off because of the rows, not of the server
                raise reader.failure from exc
            raise


class _Reader:
    """What COPY reads from: as a file, one buffer at a time."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
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
        while (size < 0 or length < size) and (chunk := next(self._chunks, b"")):
            parts.append(chunk)
            length += len(chunk)
        data = b"".join(parts)
        if size < 0:
            size = len(data)
        self._rest = data[size:]
        return data[:size]


def _copy_escaped(text: str) -> str:
    """Four passes at the speed of memchr: `str.translate` takes thirty times as long."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _copy_json(value: dict[str, Any] | list[Any]) -> str:
    return _copy_escaped(json.dumps(value))


_COPY_FIELD: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "\\N",
    bool: lambda value: "t" if value else "f",
    int: str,
    str: _copy_escaped,
    bytes: lambda value: "\\\\x" + value.hex(),
    dict: _copy_json,
    list: _copy_json,
}


def _copy_line(row: Sequence[Any]) -> bytes:
    fields = [_COPY_FIELD.get(type(value), _copy_else)(value) for value in row]
    return ("\t".join(fields) + "\n").encode()


def _copy_else(value: Any) -> str:
    """Enumerations, numbers of other kinds."""
    return _copy_escaped(str(value))


class Database:
    """A thread-safe pool of connections: waits when all are out, replaces those that died."""

    def __init__(
        self,
        target: Target,
        *,
        application: str = "ratchet",
        min_conn: int = 1,
        max_conn: int = 5,
        wait_seconds: float = WAIT_FOR_CONNECTION,
    ) -> None:
        if not 0 <= min_conn <= max_conn:
            raise ValueError(f"min_conn={min_conn} must lie between 0 and max_conn={max_conn}")
        self.target = target
        self._application = application
        self._min_conn = min_conn
        self._wait_seconds = wait_seconds
        self._slots = threading.Semaphore(max_conn)
        self._idle: list[tuple[Any, float]] = []  # connection, when it came back (monotonic seconds)
        self._lock = threading.Lock()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commit at the end, roll back on any error.

        Raises DatabaseUnavailableError when no connection is to be had, or it breaks meanwhile.
        """
        connection = self._take()
        healthy = False
        try:
            with connection.cursor() as cursor:
                yield Transaction(cursor)
            connection.commit()
            healthy = True
        except (psycopg2.OperationalError, psycopg2.InterfaceError) as exc:
            raise DatabaseUnavailableError(f"lost PostgreSQL at {self.target}: {_first_line(exc)}") from exc
        finally:
            if not healthy:
                healthy = _rolled_back(connection)
            self._give_back(connection, healthy)

    def run(
        self,
        work: Callable[[Transaction], Result],
        *,
        give_up_after: float | None = None,
        stop: Callable[[], object] = lambda: False,
    ) -> Result:
        """`work` in a transaction, again with exponential backoff while the database is away.

        `work` may run more than once: it must be safe to repeat. Gives up, with the last
        DatabaseUnavailableError, after `give_up_after` seconds or once `stop()` is true.
        """
        stop_after = float("inf") if give_up_after is None else give_up_after
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(DatabaseUnavailableError),
            wait=tenacity.wait_exponential(multiplier=BACKOFF_FIRST, max=BACKOFF_MAX),
            stop=lambda state: bool(stop()) or (state.seconds_since_start or 0.0) >= stop_after,
            before_sleep=_log_retry,
            sleep=lambda seconds: _sleep_until(stop, seconds),
            reraise=True,
        )
        for attempt in retrying:
            with attempt, self.transaction() as transaction:
                return work(transaction)
        raise AssertionError("tenacity ended without a result")

    @contextmanager
    def exclusive(self, name: str) -> Iterator[bool]:
        """Hold the advisory lock of this name, on a connection of its own; false if another does."""
        connection = self._take()
        held = broken = False
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (name,))
                held = bool(cursor.fetchone()[0])
            yield held
        except (psycopg2.OperationalError, psycopg2.InterfaceError) as exc:
            broken = True
            raise DatabaseUnavailableError(f"lost PostgreSQL at {self.target}: {_first_line(exc)}") from exc
        finally:
            try:
                if held and not broken:
                    with connection.cursor() as cursor:
                        cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", (name,))
                connection.autocommit = False
            except psycopg2.Error:
                broken = True
            self._give_back(connection, not broken)

    def close(self) -> None:
        with self._lock:
            connections, self._idle = self._idle, []
        for connection, _ in connections:
            connection.close()

    def _take(self) -> Any:
        if not self._slots.acquire(timeout=self._wait_seconds):
            raise DatabaseUnavailableError(
                f"no connection to {self.target} became free in {self._wait_seconds:g} s:"
                " raise DB_POOL_MAX_CONN or look for a transaction that does not end"
            )
        try:
            while True:
                with self._lock:
                    if not self._idle:
                        break
                    connection, since = self._idle.pop()
                if time.monotonic() - since < CHECK_AFTER or _lives(connection):
                    return connection
                connection.close()
            return connect(self.target, self._application)
        except BaseException:
            self._slots.release()
            raise

    def _give_back(self, connection: Any, healthy: bool) -> None:
        if healthy and not connection.closed:
            with self._lock:
                self._idle.append((connection, time.monotonic()))
                surplus = [self._idle.pop(0)] if len(self._idle) > max(self._min_conn, 1) else []
            for old, _ in surplus:
                old.close()
        else:
            connection.close()
        self._slots.release()


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
            f"cannot log in to PostgreSQL at {target}: {_first_line(exc)}; {advice}"
        ) from exc


class Listener:
    """A connection that hears what is notified on a channel. For one thread; a broken one is replaced."""

    def __init__(self, target: Target, channel: str, application: str = "ratchet") -> None:
        """Listens from here on; raises DatabaseUnavailableError when PostgreSQL is away."""
        self.target = target
        self._connection = connect(target, application)
        self._connection.autocommit = True
        self._ask(f"LISTEN {psycopg2.extensions.quote_ident(channel, self._connection)}")

    def wait(self, seconds: float) -> bool:
        """Whether anything came within so many seconds; raises DatabaseUnavailableError when it broke."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        if poll.poll(seconds * 1000):  # milliseconds
            self._ask(None)
        heard = bool(self._connection.notifies)
        self._connection.notifies.clear()
        return heard

    def close(self) -> None:
        self._connection.close()

    def _ask(self, statement: str | None) -> None:
        """Run a statement, or only take in what has come."""
        try:
            if statement is None:
                self._connection.poll()
                return
            with self._connection.cursor() as cursor:
                cursor.execute(statement)
        except (psycopg2.OperationalError, psycopg2.InterfaceError) as exc:
            self._connection.close()
            raise DatabaseUnavailableError(f"lost PostgreSQL at {self.target}: {_first_line(exc)}") from exc


def migrate(target: Target, role_passwords: dict[str, str] | None = None) -> list[str]:
    """Apply what sql/migrations has beyond what the database has recorded; their names.

    Safe when several services start at once: they queue on an advisory lock. `role_passwords`
    gives each service's role a login. Raises MigrationError when a migration fails (nothing of it
    stays) or an applied one was edited since.
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
            f"migration {label} failed, nothing of it was applied: {_first_line(exc)}"
        ) from exc
    cursor.execute(
        "INSERT INTO schema_migrations (version, name, checksum) VALUES (%s, %s, %s)",
        (migration.version, migration.name, checksum),
    )
    return True


def is_migrated(transaction: Transaction) -> bool:
    """Whether every migration this code knows is recorded in the database."""
    transaction._cursor.execute("SELECT to_regclass('schema_migrations')")
    if transaction._cursor.fetchone()[0] is None:
        return False
    transaction._cursor.execute("SELECT coalesce(max(version), 0) FROM schema_migrations")
    return int(transaction._cursor.fetchone()[0]) >= len(sql.migrations())


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


def _lives(connection: Any) -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        connection.rollback()
    except psycopg2.Error:
        return False
    return True


def _rolled_back(connection: Any) -> bool:
    try:
        connection.rollback()
    except psycopg2.Error:
        return False
    return True


def _first_line(exc: BaseException) -> str:
    lines = str(exc).strip().splitlines()
    return lines[0] if lines else type(exc).__name__


def _sleep_until(stop: Callable[[], object], seconds: float) -> None:
    """Sleep for so long, or until `stop()` is true: a service must end soon after its signal."""
    end = time.monotonic() + seconds
    while not stop() and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.2))


def _log_retry(state: tenacity.RetryCallState) -> None:
    wait = state.next_action.sleep if state.next_action else 0.0
    error = state.outcome.exception() if state.outcome else None
    log.warning("%s; try %d again in %.1f s", error, state.attempt_number + 1, wait)
