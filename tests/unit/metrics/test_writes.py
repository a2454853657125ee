"""Who may write: guesses, origins, sessions, and the command beside every button."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from services.core.models import RequestKind
from services.metrics.writes.access import Access, Answer
from services.metrics.writes.commands import command
from services.metrics.writes.origin import foreign, place
from services.metrics.writes.throttle import FREE, LONGEST, MEMORY, MOST, Throttle

TOKEN = "correct horse battery staple"
HOST = "localhost:8090"


def test_five_wrong_guesses_cost_nothing_then_each_doubles_the_wait() -> None:
    """1, 2, 4 … seconds, a minute at most."""
    throttle, waits = Throttle(), []
    for _ in range(FREE + 8):
        waits.append(throttle.wait("a", 0.0))
        throttle.wrong("a", 0.0)
    assert waits == [0.0] * FREE + [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, LONGEST, LONGEST]


def test_another_address_need_not_wait() -> None:
    """Nor one whose last wrong guess is long ago."""
    throttle = Throttle()
    for _ in range(FREE + 1):
        throttle.wrong("a", 0.0)
    assert throttle.wait("a", 0.0) > 0
    assert throttle.wait("b", 0.0) == 0
    throttle.wrong("a", MEMORY + 1)
    assert throttle.wait("a", MEMORY + 1) == 0


def test_no_more_addresses_are_remembered_than_fit() -> None:
    """However many guess."""
    throttle = Throttle()
    for number in range(MOST + 100):
        throttle.wrong(str(number), 0.0)
    assert len(throttle._by_address) == MOST


def test_while_it_waits_even_the_token_is_not_looked_at() -> None:
    """So that the time of an answer tells nothing."""
    access = Access(SecretStr(TOKEN))
    assert {access.guess("wrong", "a") for _ in range(FREE)} == {Answer.WRONG}
    assert access.guess(TOKEN, "a") is Answer.WAIT
    assert access.wait("a") >= 1
    assert access.guess(TOKEN, "b") is Answer.RIGHT


@given(st.text())
def test_nothing_but_the_token_is_right(said: str) -> None:
    """Spaces around it aside; without a token nothing is."""
    right = said.strip() == TOKEN
    assert (Access(SecretStr(TOKEN)).guess(said, "a") is Answer.RIGHT) == right
    assert Access(None).guess(said, "a") is Answer.WRONG


def test_a_session_is_of_its_token() -> None:
    """Another token ends it; so does any change to the cookie."""
    access = Access(SecretStr(TOKEN))
    cookie = access.begin("ada")
    session = access.session(cookie)
    assert session is not None
    assert session.actor == "ada"
    assert Access(SecretStr(TOKEN + "!")).session(cookie) is None
    assert Access(None).session(cookie) is None
    assert access.session("x" + cookie) is None
    assert TOKEN not in cookie


@pytest.mark.parametrize(
    ("headers", "is_foreign"),
    [
        ({}, False),
        ({"Origin": "http://localhost:8090"}, False),
        ({"Origin": "http://LOCALHOST:8090", "Sec-Fetch-Site": "same-origin"}, False),
        ({"Origin": "http://localhost:8091"}, True),
        ({"Origin": "http://evil.example"}, True),
        ({"Origin": "null"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:8090"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Origin": "http://localhost:8090.evil.example"}, True),
        ({"Origin": "http://localhost:8090@evil.example"}, True),
    ],
)
def test_what_another_site_sends_is_told_apart(headers: dict[str, str], *, is_foreign: bool) -> None:
    """By what the browser says of where it comes from."""
    assert (foreign(headers, HOST) is not None) == is_foreign


@pytest.mark.parametrize(
    ("asked", "to"),
    [
        ("/rounds?track=a", "/rounds?track=a"),
        ("", "/"),
        (None, "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/a\r\nSet-Cookie: x", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_one_goes_back_to_a_page_of_this_site(asked: str | None, to: str) -> None:
    """What leads elsewhere leads to the front page."""
    assert place(asked) == to


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (("train", "demo"), "ratchet train --now --track demo"),
        (("promote", "demo", "round-0002"), "ratchet promote round-0002 --track demo"),
        (("rollback", "demo"), "ratchet rollback --track demo"),
        (("rollback", "demo", "base"), "ratchet rollback --to base --track demo"),
        (("pin", "demo", "round-0002"), "ratchet pin round-0002 --track demo"),
        (("forget", "demo", "a b"), "ratchet forget 'a b'"),
    ],
)
def test_every_button_has_its_command(said: tuple[str, ...], asked: str) -> None:
    """As a person would type it."""
    assert command(*said) == asked


@given(st.sampled_from(list(RequestKind)), st.text(min_size=1), st.text(min_size=1))
def test_no_name_runs_anything_else(kind: RequestKind, track: str, name: str) -> None:
    """Whatever they are called, track and adapter are one word each for the shell."""
    words = shlex.split(command(kind, track, name))
    assert words[0] == "ratchet"
    assert len(words) <= 6
