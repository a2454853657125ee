"""A text as its page shows it: every line, inert, with its marks."""

from dataclasses import dataclass
from html import unescape

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from services.core.inert import is_harmful
from services.metrics.pages.code import LINES, excerpt, shown


@dataclass(frozen=True)
class Unit:
    kind: str
    name: str
    start_line: int
    end_line: int
    start_byte: int = 0
    comment_byte: int = 0


@given(st.text(alphabet=st.characters(exclude_characters="\n")))
def test_a_line_holds_no_markup_and_nothing_that_hides(line: str) -> None:
    """Without its own marks it is escaped text, in which every harmful character but a tab is spelled out."""
    html = str(shown(line)).replace('<mark class="escape">', "").replace("</mark>", "")
    assert "<" not in html
    assert ">" not in html
    assert not any(is_harmful(char) for char in html if char != "\t")


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "N", "P", "S"])))
def test_what_is_harmless_reads_as_it_stands(line: str) -> None:
    assert unescape(str(shown(line))) == line


def test_a_mark_that_turns_writing_round_is_spelled_out() -> None:
    assert shown("a\u202e<b>") == Markup('a<mark class="escape">\\u202e</mark>&lt;b&gt;')


@given(st.integers(1, 3 * LINES), st.integers(1, 4 * LINES))
def test_following_the_links_shows_every_line_once(total: int, first: int) -> None:
    """From any beginning the following excerpts reach the last line, and none is longer than LINES."""
    text = "x\n" * total
    part = excerpt(text, [], [], first)
    numbers = [line.number for line in part.lines]
    while part.after is not None:
        part = excerpt(text, [], [], part.after)
        assert len(part.lines) <= LINES
        numbers += [line.number for line in part.lines]
    assert numbers == list(range(min(first, total), total + 1))


def test_lines_know_their_units() -> None:
    """A method lies in a class; where each begins its name stands."""
    units = [Unit("class", "A", 1, 4), Unit("method", "b", 2, 3)]
    lines = excerpt("class A:\n  def b():\n    pass\n  c = 1\nd = 2\n", units, []).lines
    assert [line.depth for line in lines] == [1, 2, 2, 1, 0]
    assert lines[1].begins == ("method b",)


def test_the_comment_before_a_unit_is_told_apart() -> None:
    """By its bytes, as the parser found it, letters of several bytes before it included."""
    text = "é = 1\n# why\n# how\ndef f():\n    pass\n"
    unit = Unit("function", "f", 4, 5, start_byte=len("é = 1\n# why\n# how\n".encode()), comment_byte=7)
    assert [line.is_comment for line in excerpt(text, [unit], []).lines] == [False, True, True, False, False]


def test_what_was_taken_out_is_marked_in_its_line() -> None:
    lines = excerpt("a\nb\n", [], [["email", 2], ["token", 2]]).lines
    assert [line.redacted for line in lines] == [(), ("email", "token")]


def test_units_beyond_the_text_break_nothing() -> None:
    """Rows may be of another version of the rules."""
    assert len(excerpt("a\n", [Unit("function", "f", 9, 12)], []).lines) == 1
