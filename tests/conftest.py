"""A real PostgreSQL for every test that wants one, and a fresh migrated database for each."""

import itertools
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime

import hypothesis
import pytest
from pydantic import SecretStr

from services.cli.stack.postgres import EmbeddedPostgres
from services.core import db
from services.core.target import Target

TEMPLATE, HISTORY = "ratchet_template", "ratchet_history_template"
ROLE_PASSWORD = "of-a-role-in-tests"
NO_DURABILITY = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
numbers = itertools.count(1)

# Threads of an application outlive their test by seconds, and write to a stream that pytest has closed.
logging.raiseExceptions = False

# Never a timed test: two busy cores make any deadline flaky.
hypothesis.settings.register_profile("ratchet", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ratchet")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, at most 4: a test often waits for a process or for PostgreSQL."""
    return min(4, (os.cpu_count() or 1) + 1)


def administer(target: Target, *statements: str) -> None:
    """Run statements that no transaction may hold, such as CREATE DATABASE."""
    with closing(db.connect(target)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A PostgreSQL server for the whole session: where its own database is, as superuser."""
    postgres = EmbeddedPostgres(tmp_path_factory.mktemp("ratchet"), NO_DURABILITY)
    try:
        yield postgres.start()
    finally:
        postgres.stop()


@pytest.fixture(scope="session")
def template(server: Target) -> str:
    """The name of a database, migrated once, that others are copied from."""
    administer(server, f"CREATE DATABASE {TEMPLATE}")
    migrated = server.model_copy(update={"dbname": TEMPLATE})
    db.migrate(migrated)
    return TEMPLATE


@pytest.fixture
def empty_target(server: Target) -> Iterator[Target]:
    """A database with nothing in it, no migration applied."""
    name = f"empty_{next(numbers)}"
    administer(server, f"CREATE DATABASE {name} TEMPLATE template0")
    yield server.model_copy(update={"dbname": name})
    administer(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def target(server: Target, template: str) -> Iterator[Target]:
    """A fresh migrated database, as its owner."""
    name = f"test_{next(numbers)}"
    administer(server, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    yield server.model_copy(update={"dbname": name})
    administer(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(target: Target) -> Iterator[db.Database]:
    """A pool on `target`."""
    pool = db.Database(target, application="test", max_conn=10)
    yield pool
    pool.close()


@pytest.fixture
def role_target(server: Target, target: Target) -> Callable[[str], Target]:
    """`role_target("ratchet_metrics")`: the same database as `target`, as that role."""

    def as_role(role: str) -> Target:
        # Roles belong to the server, and a test of `ratchet migrate` may have given them other passwords.
        administer(server, f"ALTER ROLE {role} LOGIN PASSWORD '{ROLE_PASSWORD}'")
        return target.model_copy(update={"user": role, "password": SecretStr(ROLE_PASSWORD)})

    return as_role


@pytest.fixture(scope="session")
def history_template(server: Target, template: str) -> str:
    """The name of a database with a believable history, filled once, that others are copied from."""
    from tests.metrics_history import (
        fill,
    )  # the processor's parsers take a moment: only where it is asked for

    administer(server, f"CREATE DATABASE {HISTORY} TEMPLATE {template} STRATEGY file_copy")
    filled = server.model_copy(update={"dbname": HISTORY})
    with closing(db.Database(filled, application="history")) as database:
        fill(database)
    return HISTORY


@pytest.fixture(scope="session")
def shown_history(server: Target, history_template: str) -> Target:
    """The same, in one database for all who only look, as the role that the metrics service has."""
    name = f"test_{next(numbers)}"
    administer(server, f"CREATE DATABASE {name} TEMPLATE {history_template} STRATEGY file_copy")
    administer(server, f"ALTER ROLE ratchet_metrics LOGIN PASSWORD '{ROLE_PASSWORD}'")
    role = {"dbname": name, "user": "ratchet_metrics", "password": SecretStr(ROLE_PASSWORD)}
    return server.model_copy(update=role)


@pytest.fixture
def history(server: Target, history_template: str) -> Iterator[Target]:
    """A fresh database with ten days of sources, rounds and adapters, as its owner: tests/metrics_history."""
    from tests.metrics_history import beat

    name = f"test_{next(numbers)}"
    administer(server, f"CREATE DATABASE {name} TEMPLATE {history_template} STRATEGY file_copy")
    copied = server.model_copy(update={"dbname": name})
    with closing(db.Database(copied, application="history")) as database:
        beat(database, datetime.now(UTC))  # the template's services fell silent when it was filled
    yield copied
    administer(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def history_as(server: Target, history: Target) -> Callable[[str], Target]:
    """`history_as("ratchet_metrics")`: the same database as `history`, as that role."""

    def as_role(role: str) -> Target:
        administer(server, f"ALTER ROLE {role} LOGIN PASSWORD '{ROLE_PASSWORD}'")
        return history.model_copy(update={"user": role, "password": SecretStr(ROLE_PASSWORD)})

    return as_role
