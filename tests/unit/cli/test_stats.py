"""Figures in words."""

import pytest

from services.cli.recorded import Percentiles
from services.cli.stats import histogram


class Row:
    def __init__(self, language: str, score: int, contents: int) -> None:
        self.language, self.score, self.contents = language, score, contents


@pytest.mark.parametrize(
    ("counts", "bars"),
    [([], ""), ([0, 0], ""), ([1, 0, 8], "▁ █"), ([1, 1_000_000], "▁█"), ([5], "█")],
)
def test_a_histogram_shows_every_count_above_nought(counts: list[int], bars: str) -> None:
    assert histogram(counts) == bars


def test_a_percentile_is_the_share_that_scores_lower() -> None:
    """Of the same language; none where there is nothing to compare with."""
    known = Percentiles([Row("python", 40, 1), Row("python", 60, 2), Row("python", 80, 1), Row("go", 90, 7)])
    assert [known.of("python", score) for score in (40, 60, 61, 80, 100)] == [0.0, 25.0, 75.0, 75.0, 100.0]
    assert known.of("rust", 50) is None
