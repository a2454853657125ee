"""Logging: one event a line, to standard error, with every known secret left out.

LOG_FORMAT=text is for people: `2026-11-21T20:51:03.214Z WARNING trainer: …`, a traceback indented below it,
the level in colour on a terminal unless NO_COLOR is set. LOG_FORMAT=json is for programs: one object a line
with `time`, `level`, `service`, `logger`, `message`, `exception` where there is one, and whatever `bind` or
`extra={…}` named, such as `track` and `round`.

Where the lines go is for who starts the process. `ratchet up` sends those of each part to the file
`<part>.log` in LOGS_DIR (`up.log`, `postgres.log`, …) and keeps it small while it grows
(services/cli/stack/rotation.py): what was written is copied to `<part>.log.1`, the older copies move on to
`.2` and `.3`, and `<part>.log` itself is emptied in place, so that it stays the same file to all who write.
`.1` always is a new file (inode). Who follows a log and finds another `.1` than before reads that one from
where it had come to, and then `<part>.log` from its beginning.
"""

import json
import logging
import math
import os
import re
import sys
import time
from collections.abc import Iterable
from typing import Any, TextIO
from urllib.parse import quote

from services.core.inert import inert
from services.core.settings import REDACTED

URL_PASSWORD = re.compile(r"(?<=://)([^\s:/@]*):([^\s@]+)@")
COLOURS = {logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "31"}  # yellow, red: ECMA-48 SGR
OWN = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}  # of every record
_bound: dict[str, Any] = {}


class RedactingFormatter(logging.Formatter):
    """Replaces the given secrets, and the password of any URL, in message and traceback alike.

    No name forges a line or drives the terminal: what is not for print is escaped, and each of a traceback's
    lines is indented.
    """

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self, service: str, secrets: Iterable[str], *, colour: bool = False) -> None:
        super().__init__()
        self._service = service
        self._secrets = sorted(
            {each for secret in secrets for each in _spellings(secret)}, key=len, reverse=True
        )
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        level = f"{record.levelname:<7}"
        if self._colour and record.levelno in COLOURS:
            level = f"\x1b[{COLOURS[record.levelno]}m{level}\x1b[0m"
        message = inert(self._redacted(record.getMessage()))
        trace = [f"  {inert(line)}" for line in (self._trace(record) or "").splitlines()]
        return "\n".join([f"{self.formatTime(record)} {level} {self._service}: {message}", *trace])

    def _trace(self, record: logging.LogRecord) -> str | None:
        traces = [self.formatException(record.exc_info)] if record.exc_info else []
        traces += [record.stack_info] if record.stack_info else []
        return self._redacted("\n".join(traces)) if traces else None

    def _redacted(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return URL_PASSWORD.sub(rf"\1:{REDACTED}@", text)


class JsonFormatter(RedactingFormatter):
    """The same as one JSON object a line, in ASCII; never NaN, which is no JSON."""

    def format(self, record: logging.LogRecord) -> str:
        given = {name: value for name, value in vars(record).items() if name not in OWN}
        fields = {name: self._value(value) for name, value in {**_bound, **given}.items()}
        entry = {
            **fields,
            "time": self.formatTime(record),
            "level": record.levelname,
            "service": self._service,
            "logger": record.name,
            "message": self._redacted(record.getMessage()),
        }
        if (trace := self._trace(record)) is not None:
            entry["exception"] = trace
        return json.dumps(entry, allow_nan=False)

    def _value(self, value: Any) -> Any:
        if isinstance(value, bool | int) or value is None:
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        return self._redacted(str(value))


def setup(service: str, level: str = "INFO", secrets: Iterable[str] = (), style: str = "text") -> None:
    """Send this process's log to standard error, without `secrets`. Call once, at start.

    `style` is LOG_FORMAT: text or json.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(service, secrets, style, colour=_takes_colour(sys.stderr)))
    logging.basicConfig(level=level, handlers=[handler], force=True)


def formatter(
    service: str, secrets: Iterable[str], style: str = "text", *, colour: bool = False
) -> RedactingFormatter:
    """What writes the lines in a style: for a handler other than standard error's."""
    if style == "json":
        return JsonFormatter(service, secrets)
    return RedactingFormatter(service, secrets, colour=colour)


def bind(**fields: Any) -> None:
    """Have every later JSON line of this process carry these fields, as `track`; None takes one away."""
    _bound.update(fields)
    for name in [name for name, value in _bound.items() if value is None]:
        del _bound[name]


def _takes_colour(stream: TextIO) -> bool:
    """As https://no-color.org has it."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _spellings(secret: str) -> set[str]:
    """A secret as it stands in an environment, a URL, a JSON document and a Python repr."""
    quoted = {quote(secret, safe=safe, errors="surrogateescape") for safe in ("/", "")}
    return {secret, *quoted, json.dumps(secret)[1:-1], repr(secret)[1:-1]} - {""}
