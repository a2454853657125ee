"""Packing documents into rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.packing import WINDOW_ROWS, pack
from services.trainer.samples.sample import Sample

LENGTH = 64


def sample(content_id: int, size: int) -> Sample:
    prompt = size // 3
    return Sample(content_id, tuple(range(size)), prompt, prompt, size, 1)


samples = st.lists(st.integers(2, LENGTH), max_size=60).map(
    lambda sizes: [sample(number, size) for number, size in enumerate(sizes)]
)


@given(samples)
def test_every_sample_is_in_exactly_one_row(given_samples: list[Sample]) -> None:
    """Nothing is dropped, nothing is seen twice."""
    packed = [one.content_id for row in pack(given_samples, LENGTH) for one in row.samples]
    assert sorted(packed) == [one.content_id for one in given_samples]


@given(samples)
def test_no_row_is_over_full(given_samples: list[Sample]) -> None:
    """A row holds at most its length, and no two rows would fit into one."""
    sizes = sorted(row.tokens for row in pack(given_samples, LENGTH))
    assert all(size <= LENGTH for size in sizes)
    assert len(sizes) < 2 or sizes[0] + sizes[1] > LENGTH


def test_a_sample_longer_than_a_row_is_refused() -> None:
    """It is the sample maker's work to cut."""
    with pytest.raises(ValueError, match="65 tokens"):
        pack([sample(1, LENGTH + 1)], LENGTH)


@given(samples)
def test_rows_come_in_the_order_of_their_first_samples(given_samples: list[Sample]) -> None:
    """Shuffled samples make shuffled rows, and a row's samples stay in order."""
    rows = [[one.content_id for one in row.samples] for row in pack(given_samples, LENGTH)]
    assert rows == sorted(sorted(row) for row in rows)


@given(st.lists(st.integers(2, LENGTH), max_size=800))
def test_a_kept_order_holds_from_window_to_window(sizes: list[int]) -> None:
    """Nothing is dropped, and no sample comes much before one that it follows."""
    given_samples = [sample(number, size) for number, size in enumerate(sizes)]
    rows = pack(given_samples, LENGTH, keep_order=True)
    order = [one.content_id for row in rows for one in row.samples]
    assert sorted(order) == list(range(len(sizes)))
    started = [sum(sizes[:number]) for number in range(len(sizes))]
    latest = 0
    for content_id in order:
        latest = max(latest, started[content_id])
        assert latest - started[content_id] <= (WINDOW_ROWS + 1) * LENGTH
