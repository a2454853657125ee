"""How often a content was trained on: counted as the loop takes its batches."""

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.engine.faults import Faults
from services.trainer.engine.feed import Order
from services.trainer.packing import Row
from services.trainer.receipts import exposure
from services.trainer.receipts.exposure import Exposure
from services.trainer.samples.sample import Extract, Sample


def sample(*extracts: Extract) -> Sample:
    tokens = sum(each.tokens for each in extracts)
    return Sample(extracts[0].content_id, tuple(range(tokens)), 0, 0, tokens, tokens, extracts=extracts)


def rows_of(contents: int) -> list[Row]:
    """A row each: the whole of a content, and its second half once more."""
    return [
        Row((sample(Extract(number, 1, 10, 20)), sample(Extract(number, 6, 10, 10))))
        for number in range(contents)
    ]


def figures(steps: int, *, left_out: tuple[int, ...] = (), processes: Any = ((0, 1),)) -> dict[str, Any]:
    return {"weights_step": steps, "left_out": left_out, "processes": processes}


@given(
    rows=st.integers(1, 12),
    epochs=st.floats(0.3, 4),
    per_step=st.integers(1, 5),
    worlds=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), max_size=3),
    left_out=st.sets(st.integers(0, 8), max_size=3),
    share=st.floats(0, 1),
)
def test_it_is_what_the_processes_took(
    rows: int, epochs: float, per_step: int, worlds: list[tuple[int, int]], left_out: set[int], share: float
) -> None:
    """Step by step, rank by rank, also where their number changed and batches were left out."""
    orders = {world: Order(rows, per_step * world, epochs, seed=1, world=world) for world in range(1, 5)}
    processes = [(0, 2), *sorted(worlds)]
    steps = math.floor(share * orders[2].steps)
    skipped = tuple(sorted(left_out))
    took: Counter[int] = Counter()
    for step in range(steps):
        world = [number for since, number in processes if since <= step][-1]
        for rank in range(world):
            took.update(orders[world].batch(Faults(skipped=skipped).batch_of(step), rank))
    training = figures(steps, left_out=skipped, processes=processes)
    found = exposure.count(rows_of(rows), exposure.batches(training, orders.__getitem__))
    assert {number: each.seen for number, each in found.items()} == {n: 2 * took[n] for n in range(rows)}
    assert sum(each.tokens for each in found.values()) == 30 * took.total()


def test_each_epoch_shows_every_sample_once() -> None:
    order = Order(rows=6, rows_per_batch=2, epochs=3, seed=0)
    found = exposure.count(rows_of(6), exposure.batches(figures(order.steps), lambda _: order))
    assert all(
        (each.seen, each.samples, each.tokens, each.spans) == (6, 2, 90, ((1, 10),))
        for each in found.values()
    )


def test_steps_after_the_published_weights_do_not_count() -> None:
    """Stopped early, the best step's weights are published: what came later is in none of them."""
    order = Order(rows=6, rows_per_batch=2, epochs=3, seed=0)
    found = exposure.count(rows_of(6), exposure.batches(figures(1), lambda _: order))
    assert sorted(each.seen for each in found.values()) == [0, 0, 0, 0, 2, 2]
    assert [each.spans for each in found.values() if not each.seen] == [()] * 4


def test_lines_that_touch_are_one_span_and_others_are_not() -> None:
    each = Exposure()
    for first, last in ((30, 40), (1, 5), (6, 9), (35, 50), (60, 59)):  # the last: no line at all
        each.add(first, last, 1, times=1)
    assert each.spans == ((1, 9), (30, 50))


def test_a_sample_of_several_contents_counts_for_each() -> None:
    row = Row((sample(Extract(1, 5, 9, 7), Extract(2, 1, 3, 4)),))
    found = exposure.count([row], [[0], [0]])
    assert {number: (each.seen, each.tokens) for number, each in found.items()} == {1: (2, 14), 2: (2, 8)}


def test_a_sample_that_does_not_say_is_counted_apart() -> None:
    row = Row((Sample(7, (1, 2, 3), 0, 0, 3, 3),))
    assert exposure.count([row], [[0]])[exposure.NO_CONTENT].tokens == 3


@pytest.mark.parametrize(("processes", "known"), [(((0, 1),), True), (((4, 2),), False), ((), False)])
def test_an_older_checkpoint_leaves_only_the_plan(processes: Any, known: bool) -> None:
    """It did not say how many processes shared the steps before it."""
    training = figures(2, processes=processes)
    assert exposure.is_counted(training) is known
    order = Order(rows=4, rows_per_batch=2, epochs=1, seed=0)
    assert len(list(exposure.batches(training, lambda _: order))) == 2
