"""The end of a round's log, for its page: 200 lines of a round, without the log's secrets.

A handler beside the one that writes to standard error. Which round the lines are of is said by a record that
carries `round_id` (`extra={"round_id": …}`); lines before it wait. A thread writes every few seconds what has
come, on a connection of its own: a database that is away costs lines, and never a round.
"""

import logging
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from services.core.db import Database
from services.core.inert import inert_lines
from services.core.log import RedactingFormatter
from services.core.settings import Settings

LINES = 200  # of a round
LINE_CHARACTERS = 1000
PERIOD = 3.0  # seconds between two writes
LAST_WORDS = 5.0  # seconds that a process which leaves waits for the last one


@dataclass(frozen=True)
class Line:
    at: datetime
    level: str
    text: str


class LineFormatter(RedactingFormatter):
    """Message and traceback, a long one without its middle: time and level are kept beside it."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__("trainer.round", secrets)

    def format(self, record: logging.LogRecord) -> str:
        parts = (self._redacted(record.getMessage()), self._trace(record))
        said = inert_lines("\n".join(part for part in parts if part))
        if len(said) <= LINE_CHARACTERS:
            return said
        half = LINE_CHARACTERS // 2
        return f"{said[: half - 3]} … {said[-half:]}"


class RoundLog(logging.Handler):
    """Keeps lines until it knows their round, then writes them into the ledger until it is closed."""

    def __init__(self, database: Database, secrets: Iterable[str], period: float = PERIOD) -> None:
        super().__init__()
        self.setFormatter(LineFormatter(secrets))
        self._database = database
        self._period = period
        self._waiting: deque[Line] = deque(maxlen=LINES)
        self._round_id: int | None = None
        self._ended = threading.Event()
        self._writer = threading.Thread(target=self._write_on, name="round log", daemon=True)
        self.addFilter(lambda record: record.thread != self._writer.ident)  # of its own troubles nothing

    def emit(self, record: logging.LogRecord) -> None:
        try:
            at = datetime.fromtimestamp(record.created, UTC)
            self._waiting.append(Line(at, record.levelname, self.format(record)))
            if self._round_id is None and isinstance(named := getattr(record, "round_id", None), int):
                self._round_id = named
                self._writer.start()
        except Exception:  # as logging's own handlers do
            self.handleError(record)

    def close(self) -> None:
        """Write what has not been; logging.shutdown calls it."""
        self._ended.set()
        if self._writer.is_alive():
            self._writer.join(LAST_WORDS)
        super().close()

    def _write_on(self) -> None:
        while not self._ended.wait(self._period):
            self._write()
        self._write()
        self._database.close()

    def _write(self) -> None:
        lines = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not lines:
            return
        try:
            with self._database.transaction() as tx:
                tx.execute(
                    "record_round_log",
                    round_id=self._round_id,
                    at=[line.at for line in lines],
                    levels=[line.level for line in lines],
                    lines=[line.text for line in lines],
                )
                tx.execute("trim_round_log", round_id=self._round_id, most=LINES)
        except Exception:  # again with the next ones, as many as there is room for
            room = LINES - len(self._waiting)
            self._waiting.extendleft(reversed(lines[max(0, len(lines) - room) :]))


def keep(settings: Settings) -> None:
    """Have this process's log kept, beside where it goes already."""
    database = Database(settings.database(), application="ratchet round log", min_conn=0, max_conn=1)
    logging.getLogger().addHandler(RoundLog(database, settings.secrets()))
