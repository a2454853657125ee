"""How alike two texts are."""

from hypothesis import given
from hypothesis import strategies as st

from services.trainer.suites.similarity import distance, edit_similarity, normalised

texts = st.text("ab\n é", max_size=12)


def by_the_book(one: str, other: str) -> int:
    """Levenshtein's table, row by row."""
    above = list(range(len(other) + 1))
    for at, character in enumerate(one, start=1):
        row = [at]
        for place, another in enumerate(other, start=1):
            row.append(min(above[place] + 1, row[-1] + 1, above[place - 1] + (character != another)))
        above = row
    return above[-1]


@given(texts, texts)
def test_the_distance_is_levenshteins(one: str, other: str) -> None:
    assert distance(one, other) == by_the_book(one, other)


@given(texts, texts)
def test_similarity_is_1_for_equal_texts_alone(one: str, other: str) -> None:
    assert 0 <= edit_similarity(one, other) <= 1
    assert (edit_similarity(one, other) == 1) is (one == other)


def test_blanks_at_ends_of_lines_do_not_count() -> None:
    assert normalised("\n  a = 1  \n\nb\t\n") == "  a = 1\n\nb"
