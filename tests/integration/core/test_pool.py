"""The pool: waits, heals, never leaks."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr

from services.cli.stack.postgres import EmbeddedPostgres
from services.core.db import Database, Transaction
from services.core.errors import DatabaseUnavailableError
from services.core.target import Target


def ask(transaction: Transaction, question: str) -> object:
    transaction._cursor.execute(question)
    return transaction._cursor.fetchone()[0]


def backend_pid(transaction: Transaction) -> object:
    return ask(transaction, "SELECT pg_backend_pid()")


def terminate(target: Target, pid: object) -> None:
    """End that backend and wait until it is gone."""
    other = Database(target, application="terminator")
    with other.transaction() as transaction:
        assert ask(transaction, f"SELECT pg_terminate_backend({pid}, 5000)")
    other.close()


@pytest.fixture
def pool(target: Target):
    """`pool(max_conn=…)`: a Database of one's own on `target`."""
    made: list[Database] = []

    def make(**options: object) -> Database:
        made.append(Database(target, application="pool", **options))
        return made[-1]

    yield make
    for database in made:
        database.close()


def test_waits_for_a_connection(pool: Callable[..., Database]) -> None:
    """When all are out, the next caller gets the one that comes back."""
    database = pool(max_conn=1)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> object:
        with database.transaction() as transaction:
            inside.set()
            leave.wait(60)
            return backend_pid(transaction)

    def take() -> object:
        with database.transaction() as transaction:
            return backend_pid(transaction)

    with ThreadPoolExecutor(2) as threads:
        held = threads.submit(hold)
        assert inside.wait(60)
        waiting = threads.submit(take)
        assert not waiting.done()
        leave.set()
        assert waiting.result(60) == held.result(60)


def test_says_when_none_becomes_free(pool: Callable[..., Database]) -> None:
    """After the wait: an error that names the setting to raise."""
    database = pool(max_conn=1, wait_seconds=0.1)
    with database.transaction():
        with pytest.raises(DatabaseUnavailableError, match="DB_POOL_MAX_CONN"), database.transaction():
            pass


def test_reuses_a_connection(pool: Callable[..., Database]) -> None:
    """Two transactions, one after the other, share a connection."""
    database = pool(max_conn=2)
    assert database.run(backend_pid) == database.run(backend_pid)


def test_never_opens_more_than_its_maximum(pool: Callable[..., Database]) -> None:
    """Twelve threads on three connections: all served, never more than three at the server."""
    database = pool(max_conn=3)

    def work(_number: int) -> object:
        return database.run(
            lambda transaction: ask(
                transaction,
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pool'"
                " AND datname = current_database()",
            )
        )

    with ThreadPoolExecutor(12) as threads:
        counts = list(threads.map(work, range(120)))
    assert len(counts) == 120
    assert max(counts) <= 3


def test_replaces_a_connection_that_died_idle(
    pool: Callable[..., Database], target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection ended by the server is asked before it is handed out, and replaced."""
    monkeypatch.setattr("services.core.db.pool.CHECK_AFTER", 0.0)
    database = pool()
    dead = database.run(backend_pid)
    terminate(target, dead)
    with database.transaction() as transaction:
        assert backend_pid(transaction) != dead


def test_run_repeats_what_a_lost_connection_broke(pool: Callable[..., Database], target: Target) -> None:
    """A backend that dies inside the transaction costs a second attempt, not the work."""
    database = pool()
    attempts = []

    def work(transaction: Transaction) -> object:
        attempts.append(backend_pid(transaction))
        if len(attempts) == 1:
            terminate(target, attempts[0])
        return ask(transaction, "SELECT 42")

    assert database.run(work) == 42
    assert len(attempts) == 2


def test_an_error_of_the_caller_rolls_back_and_keeps_the_connection(pool: Callable[..., Database]) -> None:
    """Nothing of a failed transaction stays, and its connection serves the next."""
    database = pool(max_conn=1)
    with pytest.raises(ValueError, match="on purpose"), database.transaction() as transaction:
        transaction._cursor.execute("CREATE TABLE never (id integer)")
        pid = backend_pid(transaction)
        raise ValueError("on purpose")
    with database.transaction() as transaction:
        assert backend_pid(transaction) == pid
        assert ask(transaction, "SELECT to_regclass('never')") is None


def test_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    """After stop and start of PostgreSQL the same pool goes on, with the same data."""
    server = EmbeddedPostgres(tmp_path)
    try:
        database = Database(server.start())
        with database.transaction() as transaction:
            transaction._cursor.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        server.stop()
        with pytest.raises(DatabaseUnavailableError), database.transaction() as transaction:
            backend_pid(transaction)
        server.start()
        assert database.run(lambda transaction: ask(transaction, "SELECT answer FROM kept")) == 42
        database.close()
    finally:
        server.stop()


def test_gives_up_when_told_to(server: Target) -> None:
    """`give_up_after` bounds the waiting; the last error comes out."""
    away = Database(server.model_copy(update={"port": 1}))
    with pytest.raises(DatabaseUnavailableError, match="is it running"):
        away.run(lambda _transaction: None, give_up_after=0.6)


def test_stops_waiting_when_the_service_stops(server: Target) -> None:
    """A service told to stop does not go on waiting for the database."""
    away = Database(server.model_copy(update={"port": 1}))
    with pytest.raises(DatabaseUnavailableError):
        away.run(lambda _transaction: None, stop=lambda: True)


def test_a_wrong_password_is_named_without_it(server: Target) -> None:
    """The advice is the setting, and the password is in no message."""
    wrong = Database(server.model_copy(update={"password": SecretStr("letmein")}))
    with pytest.raises(DatabaseUnavailableError, match="POSTGRES_PASSWORD") as caught:
        wrong.run(lambda _transaction: None, give_up_after=0)
    assert "letmein" not in str(caught.value)


def test_only_one_holds_a_name(pool: Callable[..., Database]) -> None:
    """`exclusive` tells the second that it is second, and lets it in afterwards."""
    database = pool(max_conn=3)
    with database.exclusive("track") as first, database.exclusive("track") as second:
        with database.exclusive("another") as other:
            assert (first, second, other) == (True, False, True)
    with database.exclusive("track") as again:
        assert again


@pytest.mark.parametrize(("least", "most"), [(-1, 5), (6, 5)])
def test_impossible_sizes_are_refused(server: Target, least: int, most: int) -> None:
    """min_conn lies between 0 and max_conn."""
    with pytest.raises(ValueError, match="min_conn"):
        Database(server, min_conn=least, max_conn=most)
