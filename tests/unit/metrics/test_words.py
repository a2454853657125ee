"""Figures for people."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from services.core.inert import escape as spelled
from services.core.inert import is_harmful
from services.metrics.pages.words import ago, code_words, duration, marked, number, percent


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (75, "1 min 15 s"),
        (3600, "1 h"),
        (8000, "2 h 13 min"),
        (200_000, "2 d 7 h"),
        (-1, "0 s"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    """The two greatest units."""
    assert duration(seconds) == text


def test_an_improvement_is_shown_as_fewer_bits() -> None:
    """0.031 is 3.1 % fewer; a loss has a plus."""
    assert (percent(0.031), percent(-0.004), percent(None)) == ("−3.1 %", "+0.4 %", "–")


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "1"])
def test_what_is_no_number_is_a_dash(value: object) -> None:
    """Nothing that is not a finite number is printed as one."""
    assert number(value) == "–"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3, "just now"), (90, "1 min ago"), (8000, "2 h ago"), (-7300, "in 2 h")],
)
def test_a_moment_is_told_from_now(seconds: float, text: str) -> None:
    """Roughly, with the moment itself in the element's title."""
    moment = datetime.now(UTC) - timedelta(seconds=seconds)
    assert ago(moment).endswith(f' UTC">{text}</time>')


def test_code_of_others_is_marked_where_it_hides_something() -> None:
    """Markup is text, a bidi control is spelled out, lines and tabs stay."""
    shown = marked("if\tx:\n  <b>\u202e")
    assert shown == 'if\tx:\n  &lt;b&gt;<mark class="escape">\\u202e</mark>'


def test_backquotes_are_code() -> None:
    """What stands in them, and never as markup of its own."""
    assert code_words("run `ratchet <b>`") == "run <code>ratchet &lt;b&gt;</code>"


@given(st.text(st.sampled_from("a<&'\"\n\t\r\x1b\u202e\u200b\ud800é")))
def test_each_character_is_shown_escaped_or_spelled_out(text: str) -> None:
    """Whatever stands beside it."""
    by_one = [
        f'<mark class="escape">{spelled(char)}</mark>'
        if char not in "\n\t" and is_harmful(char)
        else escape(char)
        for char in text
    ]
    assert marked(text) == "".join(by_one)
