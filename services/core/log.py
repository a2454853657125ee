"""Logging: one line an event, to standard error, with every known secret left out."""

import logging
import re
import sys
import time
from collections.abc import Iterable

from services.core.settings import REDACTED

# Control characters and those that turn text around: a file's name must forge no line, nor drive a terminal
ESCAPES = {
    code: chr(code).encode("unicode_escape").decode()
    for code in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
URL_PASSWORD = re.compile(r"(?<=://)([^\s:/@]+):([^\s@]+)@")


class RedactingFormatter(logging.Formatter):
    """Replaces the given secrets, and the password of any URL, in message and traceback alike."""

    converter = staticmethod(time.gmtime)

    def __init__(self, service: str, secrets: Iterable[str]) -> None:
        super().__init__(
            f"%(asctime)s.%(msecs)03dZ %(levelname)-7s {service}: %(message)s", "%Y-%m-%dT%H:%M:%S"
        )
        self._secrets = sorted(set(secrets), key=len, reverse=True)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the base class's)
        record.message = self._redacted(record.message).translate(ESCAPES)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        return self._redacted(super().format(record))  # a traceback too

    def _redacted(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return URL_PASSWORD.sub(rf"\1:{REDACTED}@", text)


def setup(service: str, level: str = "INFO", secrets: Iterable[str] = ()) -> None:
    """Send this process's log to standard error, without `secrets`. Call once, at start."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(service, secrets))
    logging.basicConfig(level=level, handlers=[handler], force=True)
