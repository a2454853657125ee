"""SIGTERM in the child: leave at once while nothing is at stake, at the next safe point otherwise."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(BaseException):
    """The round was asked to stop; it stays open and is taken up again later."""


class Interruption:
    """Installs the handlers; `requested` turns true once and stays so."""

    def __init__(self) -> None:
        self.requested = False
        self._deferred = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._receive)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """A stretch that calls `check` itself, or must not be left half done."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False
        self.check()

    def check(self) -> None:
        """Raises Interrupted once a stop was asked for: for safe points, in what is deferred or not.

        Also where the handler's own exception was swallowed, as in a callback of a library.
        """
        if self.requested:
            raise Interrupted

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        if not self._deferred:
            raise Interrupted
