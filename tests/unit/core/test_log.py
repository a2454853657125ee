"""The log: one line an event, and no secret in it."""

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core import log
from services.core.log import JsonFormatter, RedactingFormatter, setup
from services.core.settings import REDACTED


def record(message: str, *arguments: object, exc_info: object = None, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("name", logging.INFO, __file__, 1, message, arguments, exc_info)
    vars(made).update(extra)
    return made


def formatted(message: str, *arguments: object, secrets: list[str], exc_info: object = None) -> str:
    return RedactingFormatter("trainer", secrets).format(record(message, *arguments, exc_info=exc_info))


def as_json(
    message: str, *arguments: object, secrets: tuple[str, ...] = (), **more: object
) -> dict[str, object]:
    line = JsonFormatter("trainer", secrets).format(record(message, *arguments, **more))
    assert "\n" not in line
    return json.loads(line, parse_constant=pytest.fail)


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, put back afterwards; and no field that stays bound."""
    before = logging.root.handlers[:], logging.root.level
    yield logging.root
    logging.root.handlers[:], logging.root.level = before
    log._bound.clear()


# for a person


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


@pytest.mark.parametrize("spelt", [str, lambda secret: quote(secret, safe=""), quote, json.dumps, repr])
def test_a_secret_is_known_however_it_is_spelt(spelt) -> None:
    """In a URL it is quoted, in a document or an error of Python's escaped."""
    line = formatted("got %s", spelt("p/a\"s's\\w ö"), secrets=["p/a\"s's\\w ö"])
    assert re.search(rf"got (['\"]?){re.escape(REDACTED)}\1$", line)


def test_the_password_of_any_url_is_left_out() -> None:
    """Also of a URL that no setting named, and of one without a user."""
    line = formatted("from postgresql://sam:hidden@db/code", secrets=[])
    assert line.endswith(f"postgresql://sam:{REDACTED}@db/code")
    assert formatted("redis://:hidden@db/0", secrets=[]).endswith(f"redis://:{REDACTED}@db/0")


@given(st.text(min_size=4), st.text())
def test_no_longer_secret_shows_through_a_shorter_one(secret: str, tail: str) -> None:
    """A secret that begins with another one is left out whole."""
    line = formatted("%s", secret + tail, secrets=[secret, secret + tail])
    assert line.endswith(f": {REDACTED}")


def test_a_name_forges_no_line_and_drives_no_terminal() -> None:
    """Line breaks, escape sequences and characters that turn text around are escaped."""
    line = formatted("%s: gone", "a\nb\x1b[2J\u202e", secrets=[])
    assert line.endswith(r": a\x0ab\x1b[2J\u202e: gone")


def refuse(what: str) -> None:
    raise ValueError(what)


def test_a_traceback_forges_no_line_either() -> None:
    """Each of its lines is indented, and nothing in it drives a terminal."""
    try:
        refuse("x\n2026-11-21T00:00:00.000Z INFO    trainer: promoted \x1b[2J")
    except ValueError:
        first, *rest = formatted("failed", secrets=[], exc_info=sys.exc_info()).split("\n")
    assert first.endswith(": failed")
    assert all(line.startswith("  ") for line in rest)
    assert "\x1b" not in "".join(rest)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "stream", "coloured"),
    [
        ({}, Terminal, True),
        ({"NO_COLOR": "1"}, Terminal, False),
        ({"NO_COLOR": ""}, Terminal, True),
        ({"TERM": "dumb"}, Terminal, False),
        ({}, io.StringIO, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    root: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    stream: type[io.StringIO],
    coloured: bool,
) -> None:
    """A file, a pipe and whoever sets NO_COLOR get plain text."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    written = stream()
    monkeypatch.setattr(sys, "stderr", written)
    setup("metrics")
    logging.getLogger("any").error("gone")
    assert ("\x1b[31mERROR  \x1b[0m" in written.getvalue()) is coloured


def test_setup_writes_to_standard_error(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output stays free for what a command prints."""
    setup("metrics", "INFO", ["abc123"])
    logging.getLogger("any").info("key abc123")
    captured = capsys.readouterr()
    assert (captured.out, f"metrics: key {REDACTED}" in captured.err) == ("", True)


# for programs


def test_a_json_line_says_who_said_what_and_when() -> None:
    entry = as_json("hello %s", "world")
    assert str(entry.pop("time")).endswith("Z")
    assert entry == {"level": "INFO", "service": "trainer", "logger": "name", "message": "hello world"}


def test_a_json_line_has_the_fields_it_was_given(root: logging.Logger) -> None:
    """Those of the process, and those of this line, which may be more exact."""
    log.bind(track="demo", round=3)
    assert as_json("x", round=4, loss=0.5, at=None).items() >= {
        ("track", "demo"), ("round", 4), ("loss", 0.5), ("at", None),
    }  # fmt: skip
    log.bind(round=None)
    assert "round" not in as_json("x")


def test_a_field_cannot_pass_for_another(root: logging.Logger) -> None:
    """What the line itself says stands above what was bound."""
    log.bind(level="DEBUG", service="metrics")
    assert as_json("x").items() >= {("level", "INFO"), ("service", "trainer")}


def test_json_has_the_traceback_in_the_same_line() -> None:
    try:
        int("refused for abc123")
    except ValueError:
        entry = as_json("failed", secrets=("abc123",), exc_info=sys.exc_info())
    assert "ValueError" in str(entry["exception"])
    assert "abc123" not in str(entry)


@given(st.text(min_size=6), st.text(), st.floats())
def test_a_json_line_parses_strictly_and_has_no_secret(secret: str, before: str, number: float) -> None:
    """Whatever stands around it, in the message and in the fields."""
    entry = as_json("%s", before + secret, secrets=(secret,), path=before + secret, number=number)
    assert REDACTED in str(entry["message"])
    assert entry["message"] == entry["path"]


def test_setup_takes_the_style_from_the_settings(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    setup("metrics", "INFO", ["abc123"], "json")
    logging.getLogger("any").info("key abc123")
    assert json.loads(capsys.readouterr().err)["message"] == f"key {REDACTED}"
