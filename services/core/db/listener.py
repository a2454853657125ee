"""Hearing at once what is notified on a channel."""

import select

import psycopg2.extensions

from services.core.db.connection import LOST, connect, lost
from services.core.target import Target


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
        except LOST as exc:
            self._connection.close()
            raise lost(self.target, exc) from exc
