"""The log: one line an event, and no secret in it."""

import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.log import RedactingFormatter, setup
from services.core.settings import REDACTED


def formatted(message: str, *arguments: object, secrets: list[str], exc_info: object = None) -> str:
    record = logging.LogRecord("name", logging.INFO, __file__, 1, message, arguments, exc_info)
    return RedactingFormatter("trainer", secrets).format(record)


def test_a_line_has_time_level_and_service() -> None:
    """Enough to read several services' logs side by side."""
    line = formatted("hello %s", "world", secrets=[])
    assert line.endswith("Z INFO    trainer: hello world")


def test_a_secret_in_message_or_argument_is_left_out() -> None:
    """Wherever the secret stands."""
    line = formatted("token abc123 and %s", "xabc123y", secrets=["abc123"])
    assert line.endswith(f"token {REDACTED} and x{REDACTED}y")


def test_a_secret_in_a_traceback_is_left_out() -> None:
    """Drivers like to repeat connection strings."""
    try:
        int("refused for abc123")
    except ValueError:
        line = formatted("failed", secrets=["abc123"], exc_info=sys.exc_info())
    assert "ValueError" in line
    assert "abc123" not in line


def test_the_password_of_any_url_is_left_out() -> None:
    """Also of a URL that no setting named."""
    line = formatted("from postgresql://sam:hidden@db/code", secrets=[])
    assert line.endswith(f"postgresql://sam:{REDACTED}@db/code")


@given(st.text(min_size=4), st.text())
def test_no_longer_secret_shows_through_a_shorter_one(secret: str, tail: str) -> None:
    """A secret that begins with another one is left out whole."""
    line = formatted("%s", secret + tail, secrets=[secret, secret + tail])
    assert line.endswith(f": {REDACTED}")


def test_a_name_forges_no_line_and_drives_no_terminal() -> None:
    """Line breaks, escape sequences and characters that turn text around are escaped."""
    line = formatted("%s: gone", "a\nb\x1b[2J\u202e", secrets=[])
    assert line.endswith(r": a\nb\x1b[2J\u202e: gone")


def test_setup_writes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output stays free for what a command prints."""
    before = logging.root.handlers[:], logging.root.level
    try:
        setup("metrics", "INFO", ["abc123"])
        logging.getLogger("any").info("key abc123")
    finally:
        logging.root.handlers[:], logging.root.level = before
    captured = capsys.readouterr()
    assert (captured.out, f"metrics: key {REDACTED}" in captured.err) == ("", True)
