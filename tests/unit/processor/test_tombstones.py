"""Which paths a tombstone stands on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.forgotten import Tombstones
from services.processor.reasons import Reason
from services.processor.values import Found, Rejection

NAMES = st.lists(st.sampled_from(["a", "ab", "b.py", "é"]), min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("mark", "path", "stands"),
    [
        ("", "a/b.py", True),
        ("a/", "a/b.py", True),
        ("a/", "a", False),
        ("a/", "ab/c.py", False),
        ("a/b.py", "a/b.py", True),
        ("a/b.py", "a/b.py2", False),
        ("a", "a/b.py", False),
    ],
)
def test_a_source_a_folder_a_file(mark: str, path: str, stands: bool) -> None:
    assert (Tombstones(((mark, 1),)).on(path) is not None) == stands


@given(folder=NAMES, below=NAMES, other=NAMES)
def test_a_folder_covers_all_below_it_and_nothing_beside_it(folder: str, below: str, other: str) -> None:
    marks = Tombstones(((f"{folder}/", 7),))
    assert marks.on(f"{folder}/{below}") == Rejection(Reason.FORGOTTEN, "by forgetting 7")
    assert (marks.on(other) is not None) == other.startswith(f"{folder}/")


def test_what_is_refused_for_its_kind_stays_refused_for_that() -> None:
    link = Found("a/link", 1, 1, Rejection(Reason.SYMLINK, ""))
    assert Tombstones((("", 1),)).marked(link) is link
