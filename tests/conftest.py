"""A real PostgreSQL for every test that wants one, and a fresh migrated database for each."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing

import hypothesis
import pytest
from pydantic import SecretStr

from services.cli.postgres import EmbeddedPostgres
from services.core import db
from services.core.settings import Target

TEMPLATE = "ratchet_template"
ROLE_PASSWORD = "of-a-role-in-tests"
NO_DURABILITY = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
numbers = itertools.count(1)

# Never a timed test: two busy cores make any deadline flaky.
hypothesis.settings.register_profile("ratchet", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ratchet")


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
