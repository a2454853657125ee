"""What another threshold would admit, in numbers and in words."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from services.metrics.pages.scores import HIGHEST, Scores


@dataclass(frozen=True)
class Row:
    score: int
    contents: int


ROWS = st.lists(st.builds(Row, st.integers(0, HIGHEST), st.integers(0, 10_000)), max_size=40)
SOME = Scores.of([Row(65, 204), Row(69, 1000), Row(70, 30), Row(80, 2170)])


@given(ROWS, st.integers(0, HIGHEST))
def test_a_lower_threshold_admits_no_less(rows: list[Row], threshold: int) -> None:
    """What it admits falls with the threshold; 0 admits everything."""
    scores = Scores.of(rows)
    assert scores.admitted(0) == scores.total == sum(row.contents for row in rows)
    assert scores.admitted(threshold) >= scores.admitted(min(threshold + 1, HIGHEST))


@given(ROWS)
def test_every_score_that_occurs_has_a_bar_in_the_picture(rows: list[Row]) -> None:
    """In order, inside of the drawing, and with as many contents from there on as that threshold admits."""
    scores = Scores.of(rows)
    bars = scores.bars()
    assert [bar.score for bar in bars] == sorted({row.score for row in rows if row.contents})
    for bar in bars:
        assert bar.or_more == scores.admitted(bar.score)
        assert 0 <= float(bar.y) < float(bar.y) + float(bar.height) <= 168.1
        assert 0 <= float(bar.x) <= 99.1


def test_a_lower_one_would_admit_more() -> None:
    assert SOME.said(65, 70) == "65 would admit 1,204 more than 70 does: 3,404 of 3,404 contents (100 %)."


def test_a_higher_one_would_admit_fewer() -> None:
    assert SOME.said(71, 70) == "71 would admit 30 fewer than 70 does: 2,170 of 3,404 contents (64 %)."


def test_one_between_the_same_contents_would_admit_as_many() -> None:
    assert SOME.said(72, 71) == "72 would admit as many as 71 does: 2,170 of 3,404 contents (64 %)."


def test_the_one_in_force_says_so() -> None:
    assert SOME.said(70, 70) == "70 is in force: it admits 2,200 of 3,404 contents (65 %)."


def test_nothing_is_no_share_of_nothing() -> None:
    assert Scores.of([]).said(70, 70) == "70 is in force: it admits 0 of 0 contents (0 %)."
