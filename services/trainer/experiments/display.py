"""What a long run says of itself: a line that changes on a terminal, now and then a new one elsewhere."""

import shutil
from collections.abc import Callable
from typing import TextIO

EVERY_ON_TERMINAL, EVERY_ELSEWHERE = 0.1, 30.0  # seconds between two lines
CLEAR = "\r\x1b[K"


class Display:
    """Lines of progress to a stream. What comes too early after a line is not shown."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._terminal = stream.isatty()
        self._every = EVERY_ON_TERMINAL if self._terminal else EVERY_ELSEWHERE
        self._last: float | None = None

    def show(self, line: str) -> None:
        now = self._clock()
        if self._last is not None and now - self._last < self._every:
            return
        self._last = now
        if self._terminal:
            width = shutil.get_terminal_size().columns
            self._stream.write(f"{CLEAR}{line[: width - 1]}")
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()

    def end(self, line: str) -> None:
        """A line that stays."""
        self._stream.write(f"{CLEAR if self._terminal and self._last is not None else ''}{line}\n")
        self._stream.flush()
