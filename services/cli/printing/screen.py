"""What `ratchet up` shows: on a terminal a few lines that stay in place, on a pipe a line per change."""

import io
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

QUIET = 5.0  # seconds at least between two progress lines on a pipe
Row = tuple[str, str]  # what it is about, how it stands


class Terminal(Console):
    """A console without markup or colours of its own; a reader that goes away silences it, no more."""

    def __init__(self, file: TextIO) -> None:
        super().__init__(file=file, highlight=False, soft_wrap=True, markup=False)

    def on_broken_pipe(self) -> None:
        """Write to nowhere from now on; rich would end the process here, and the stack with it."""
        self.quiet = True
        with suppress(io.UnsupportedOperation):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.file.fileno())
            os.close(nowhere)


class Screen:
    """Progress in place below, events above."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._live: Live | None = None
        self._shown: dict[str, str] = {}
        self._shown_at = float("-inf")
        self._reader_left = False

    def say(self, text: str) -> None:
        """An event: one line that stays."""
        self.print(Text(text))

    def print(self, renderable: RenderableType) -> None:
        self._guard(lambda: self._console.print(renderable))

    def show(self, rows: Sequence[Row]) -> None:
        """How things stand now. On a pipe: only the rows that changed, and not too often."""
        if self._console.is_terminal:
            self._guard(lambda: self._draw(rows))
            return
        changed = [row for row in rows if self._shown.get(row[0]) != row[1]]
        if changed and self._clock() - self._shown_at >= QUIET:
            self._shown.update(changed)
            self._shown_at = self._clock()
            self.print(Text("\n".join(f"{label}: {text}" for label, text in changed)))

    def close(self) -> None:
        """Take the lines in place away; events still print."""
        live, self._live = self._live, None
        if live is not None:
            self._guard(live.stop)

    def _draw(self, rows: Sequence[Row]) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        grid = Table.grid(padding=(0, 2))
        for label, text in rows:
            grid.add_row(Text(label, style="bold"), Text(text, overflow="ellipsis", no_wrap=True))
        self._live.update(grid, refresh=True)

    def _guard(self, output: Callable[[], object]) -> None:
        """Output to a pipe or terminal that may be gone: that must not keep us from stopping well."""
        if self._reader_left:
            return
        try:
            output()
        except OSError:
            self._reader_left = True
