"""Times of lines at HEAD in, times of the lines of a stored text out."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from services.processor.sources import line_times
from services.processor.sources.blame import WHOLE, Span


def test_spans_end_with_the_text() -> None:
    """One over all of a file that was not looked into ends where the file does."""
    assert line_times.at_head(b"a\nb\nc", [Span(0, WHOLE, 7)]) == [7, 7, 7]
    assert line_times.at_head(b"a\nb\nc\n", [Span(1, 1, 7), Span(2, WHOLE, 8)]) == [None, 7, 8]
    assert line_times.at_head(b"", [Span(0, WHOLE, 7)]) == []


def test_a_line_not_committed_yet_has_no_time() -> None:
    """The others keep theirs, with other white space too; a byte order mark is no change."""
    version = b"\xef\xbb\xbfa = 1\r\nb = 2\r\n"
    assert line_times.of_text(b"a = 1\n  b=2\nc = 3\n", version, [1, 2], ()) == [1, 2, None]


def test_a_redacted_line_is_as_old_as_what_stood_there() -> None:
    """Where as many lines stand in its place; an edited line beside it is not taken for one."""
    version = b"a\nkey = 'AKIA'\nb\nold\nc\n"
    text = b"a\nkey = 'REDACTED'\nb\nnew\nc\n"
    assert line_times.of_text(text, version, [1, 2, 3, 4, 5], {2}) == [1, 2, 3, None, 5]
    longer = b"a\nkey = 'REDACTED'\nmore\nb\nold\nc\n"
    assert line_times.of_text(longer, version, [1, 2, 3, 4, 5], {2}) == [1, None, None, 3, 4, 5]


def test_what_was_known_of_the_text_before_is_kept() -> None:
    """Where nothing newer is known."""
    old = [[1, 2, 10], [4, 4, 20]]
    assert line_times.kept([None, None, 99, None, None], b"a\nb\nX\nc\nd\n", b"a\nb\nc\nd\n", old) == [
        10,
        10,
        99,
        None,
        20,
    ]


@given(st.lists(st.none() | st.integers(0, 3)))
def test_lines_of_one_time_are_one_row(times: list[int | None]) -> None:
    """And the rows say what the times said: from 1, ascending, without overlap or gap of their own."""
    rows = line_times.told(times)
    again: list[int | None] = [None] * len(times)
    for first, last, seconds in rows:
        assert again[first - 1 : last] == [None] * (last - first + 1)
        again[first - 1 : last] = [seconds] * (last - first + 1)
    assert again == times
    assert all(
        one[1] < two[0] and (one[1] + 1, one[2]) != (two[0], two[2]) for one, two in itertools.pairwise(rows)
    )
