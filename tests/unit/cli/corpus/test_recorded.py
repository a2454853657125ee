"""What the database says of files."""

from services.cli.corpus.recorded import Percentiles


class Row:
    def __init__(self, language: str, score: int, contents: int) -> None:
        self.language, self.score, self.contents = language, score, contents


def test_a_percentile_is_the_share_that_scores_lower() -> None:
    """Of the same language; none where there is nothing to compare with."""
    known = Percentiles([Row("python", 40, 1), Row("python", 60, 2), Row("python", 80, 1), Row("go", 90, 7)])
    assert [known.of("python", score) for score in (40, 60, 61, 80, 100)] == [0.0, 25.0, 75.0, 75.0, 100.0]
    assert known.of("rust", 50) is None
