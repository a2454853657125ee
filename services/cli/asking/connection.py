"""The database as the commands that ask about the corpus reach it: as its owner, or as whom they are told."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import SecretStr

from services.cli.environment import Environment
from services.cli.stack import session
from services.cli.stack.cluster import ROLE
from services.core.db import Database, is_migrated
from services.core.errors import ConfigurationError, DatabaseUnavailableError, MigrationError
from services.core.target import Target


@contextmanager
def opened(environment: Environment, application: str, *, connections: int = 1) -> Iterator[Database]:
    """A pool on the database of this environment, closed at the end.

    Raises DatabaseUnavailableError when none is there or it does not answer, MigrationError when its
    schema is not this code's, ConfigurationError when there is no password for it.
    """
    database = Database(target(environment), application=application, min_conn=0, max_conn=connections)
    try:
        with database.transaction() as transaction:
            if not is_migrated(transaction):
                raise MigrationError(f"{database.target} lacks migrations: run `ratchet migrate`")
        yield database
    finally:
        database.close()


def target(environment: Environment) -> Target:
    """The database that the environment names, or else the one that `ratchet up` runs here, as its owner."""
    if environment.names_database:
        return environment.owner()
    where = session.read(environment.home).get("database")
    if not isinstance(where, dict):
        raise DatabaseUnavailableError(
            "no database is known: start one with `ratchet up`, or name one in DATABASE_URL"
        )
    secret = environment.home / "secrets" / "owner"
    try:
        password = SecretStr(secret.read_text(encoding="utf-8").strip())
    except OSError as exc:
        raise ConfigurationError(f"{secret}: the owner's password cannot be read ({exc.strerror})") from exc
    return Target(**where, user=ROLE, password=password)
