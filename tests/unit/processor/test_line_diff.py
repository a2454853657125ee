"""Two small texts in, the lines they share out."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.sources import line_diff
from services.processor.sources.line_diff import Block, bare, blocks

texts = st.lists(st.sampled_from(["a", "b", "", "cc", "dd"]), max_size=12).map(
    lambda lines: "".join(f"{line}\n" for line in lines).encode()
)


def longest(one: list[bytes], two: list[bytes]) -> int:
    """The length of a longest common subsequence, by the textbook's table."""
    row = [0] * (len(two) + 1)
    for left in one:
        before, row = row, [0]
        for at, right in enumerate(two):
            row.append(before[at] + 1 if left == right else max(before[at + 1], row[at]))
    return row[-1]


@given(texts, texts)
def test_long_texts_are_cut_at_lines_that_each_has_once(new: bytes, old: bytes) -> None:
    """What is shared is then the same lines still, in ascending order, if not always the most."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(line_diff, "ANCHORED_CELLS", 0)
        shared = blocks(new, old)
    assert shared is not None
    one, two = new.split(b"\n")[:-1], old.split(b"\n")[:-1]
    for block, after in itertools.pairwise([*shared, Block(len(one), len(two), 0)]):
        assert one[block.new : block.new + block.lines] == two[block.old : block.old + block.lines] != []
        assert block.new + block.lines <= after.new
        assert block.old + block.lines <= after.old
    assert (shared == []) == (longest(one, two) == 0)


@given(texts, texts)
def test_what_is_shared_is_the_longest_common_subsequence(new: bytes, old: bytes) -> None:
    """In ascending order, in both texts, line for line the same."""
    shared = blocks(new, old)
    assert shared is not None
    one, two = new.split(b"\n")[:-1], old.split(b"\n")[:-1]
    at = was = 0
    for block in shared:
        assert block.new >= at
        assert block.old >= was
        assert block.lines > 0
        at, was = block.new + block.lines, block.old + block.lines
        assert one[block.new : at] == two[block.old : was]
    assert sum(block.lines for block in shared) == longest(one, two)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", b""),
        (b"a b\n", b"ab\n"),
        (b"\tx = 1\r\n\r\n  y", b"x=1\n\ny\n"),
        (b"a\n  ", b"a\n\n"),
        ("é\u2028 \f\n".encode(), "é\u2028\n".encode()),
    ],
)
def test_a_bare_text_is_its_lines_without_white_space(data: bytes, expected: bytes) -> None:
    """Each ends with a line feed, and nothing else ends one."""
    assert bare(data) == expected


def test_whole_lines_are_shared_and_not_parts_of_them() -> None:
    """Bytes that two texts begin or end with may end in the middle of a line."""
    assert blocks(b"abc\nd\n", b"abx\nzd\n") == []
    assert blocks(b"abc\nd\n", b"bc\nd\n") == [Block(1, 1, 1)]
    assert blocks(b"a\nb\n", b"a\n") == [Block(0, 0, 1)]


def test_a_line_that_moved_is_the_same_line() -> None:
    """When each text has it once and it is long enough to be no chance."""
    assert blocks(b"importantly\na\nb\nc\n", b"a\nb\nc\nimportantly\n") == [Block(0, 3, 1), Block(1, 0, 3)]
    assert blocks(b"}\na\nb\n", b"a\nb\n}\n") == [Block(1, 0, 2)]
    twice = b"importantly\n" * 2
    assert blocks(twice + b"a\nb\nc\n", b"a\nb\nc\nimportantly\n") == [Block(2, 0, 3)]


def test_texts_too_long_and_too_different_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is told of them, rather than something that is not so."""
    monkeypatch.setattr(line_diff, "MAX_CELLS", 5)
    assert blocks(b"a\nb\nc\n", b"c\nb\na\n") is None
    assert blocks(b"a\nb\nc\nd\ne\nf\n", b"a\nb\nc\nx\nd\ne\nf\n") is not None


def test_the_slowest_texts_take_a_bounded_time() -> None:
    """A megabyte of lines that all are alike, against a few hundred; of two kinds in turn."""
    begun = time.process_time()
    assert blocks(b"x\n" + b"y\n" * 500_000 + b"z\n", b"a\n" + b"y\n" * 190 + b"b\n") is not None
    assert blocks(b"a\nb\n" * 4_000 + b"x\n", b"b\na\na\n" * 3_000 + b"y\n") is not None
    assert time.process_time() - begun < 8
