"""Logging: one line an event, to standard error, with every known secret left out."""

import logging
import re
import sys
import time
from collections.abc import Iterable

from services.core.settings import REDACTED

URL_PASSWORD = re.compile(r"(?<=://)([^\s:/@]+):([^\s@]+)@")


class RedactingFormatter(logging.Formatter):
    """Replaces the given secrets, and the password of any URL, in message and traceback alike."""

    converter = staticmethod(time.gmtime)

    def __init__(self, service: str, secrets: Iterable[str]) -> None:
        super().__init__(
            f"%(asctime)s.%(msecs)03dZ %(levelname)-7s {service}: %(message)s", "%Y-%m-%dT%H:%M:%S"
        )
        self._secrets = sorted(set(secrets), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        for secret in self._secrets:
            line = line.replace(secret, REDACTED)
        return URL_PASSWORD.sub(rf"\1:{REDACTED}@", line)


def setup(service: str, level: str = "INFO", secrets: Iterable[str] = ()) -> None:
    """Send this process's log to standard error, without `secrets`. Call once, at start."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(service, secrets))
    logging.basicConfig(level=level, handlers=[handler], force=True)
