"""Rows for one answer: read only, in one view of the database, within a second. And the one way to write."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from werkzeug.exceptions import NotFound, ServiceUnavailable

from services.core.db import Database, Transaction
from services.core.errors import DatabaseUnavailableError
from services.core.target import Target

Result = TypeVar("Result")

PATIENCE = 1_000  # milliseconds a query may take
CONNECTIONS = 4  # at a time; most answers take one for a millisecond


class Reader:
    def __init__(self, target: Target) -> None:
        self.database = Database(target, application="ratchet api", max_conn=CONNECTIONS, wait_seconds=1.0)

    def __call__(self, work: Callable[[Transaction], Result]) -> Result:
        """What `work` reads; answers 503 while the database does not answer in time."""
        try:
            with self.transaction() as transaction:
                return work(transaction)
        except DatabaseUnavailableError as exc:
            raise ServiceUnavailable(str(exc)) from exc

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """The same for who is no request. Raises DatabaseUnavailableError."""
        with self.database.transaction() as transaction:
            transaction.execute("api_patience", milliseconds=PATIENCE)
            yield transaction

    def write(self, work: Callable[[Transaction], Result]) -> Result:
        """What `work` makes of a transaction that may call what this login may; 503 as above."""
        try:
            with self.database.transaction() as transaction:
                transaction.execute("metrics_patience", milliseconds=PATIENCE)
                return work(transaction)
        except DatabaseUnavailableError as exc:
            raise ServiceUnavailable(str(exc)) from exc

    def all(self, query: str, **parameters: Any) -> list[Any]:
        return self(lambda transaction: transaction.all(query, **parameters))


def found(row: Any, what: str) -> Any:
    """The row; answers 404 that names what there is none of."""
    if row is None:
        raise NotFound(f"there is no {what}")
    return row
