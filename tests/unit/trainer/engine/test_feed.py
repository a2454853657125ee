"""The order of data and its batches."""

import math
import threading
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from services.trainer.engine.feed import Feed, Order
from services.trainer.packing import Row
from services.trainer.samples.sample import Sample

orders = st.builds(
    Order,
    rows=st.integers(1, 40),
    rows_per_batch=st.integers(1, 12),
    epochs=st.sampled_from([0.3, 1.0, 2.0, 2.5]),
    seed=st.integers(0, 3),
    round_number=st.integers(1, 3),
    shuffled=st.booleans(),
)


@given(orders)
def test_every_row_is_seen_as_often_as_there_are_epochs(order: Order) -> None:
    """No row twice before every row once; a part of an epoch is a part of the rows."""
    seen = Counter(row for number in range(order.steps) for row in order.batch(number))
    times = math.ceil(order.rows * order.epochs) / order.rows
    assert set(seen.values()) <= {math.floor(times), math.ceil(times)} - {0}
    assert seen.total() == math.ceil(order.rows * order.epochs)


@given(orders, st.integers(1, 4))
def test_processes_share_a_batch_evenly(order: Order, world: int) -> None:
    """Each has as many rows as the others, none of them idle; together they have the batch."""
    shared = Order(**{**vars(order), "world": world})
    for number in range(shared.steps):
        parts = [shared.batch(number, rank) for rank in range(world)]
        assert len({len(part) for part in parts}) == 1
        assert set(order.batch(number)) <= {row for part in parts for row in part}


def test_order_follows_from_seed_round_and_epoch_alone() -> None:
    """Equal orders are equal; another seed, round or epoch is another shuffle."""
    order = Order(rows=100, rows_per_batch=100, epochs=2, seed=1, round_number=1)
    assert order.batch(0) == Order(**vars(order)).batch(0)
    others = [order.batch(1), Order(**{**vars(order), "seed": 2}).batch(0)]
    others.append(Order(**{**vars(order), "round_number": 2}).batch(0))
    assert all(other != order.batch(0) for other in others)


def test_a_curriculum_keeps_the_order_given() -> None:
    """Simple to complex, as the samples came."""
    order = Order(rows=5, rows_per_batch=2, epochs=2, seed=1, shuffled=False)
    assert [row for number in range(order.steps) for row in order.batch(number)] == [*range(5), *range(5)]


def feed(rows: int, per_batch: int) -> Feed:
    made = [Row((Sample(number, (number, 1, 2), 1, 1, 3, 1),)) for number in range(rows)]
    order = Order(rows=rows, rows_per_batch=per_batch, epochs=1, seed=0, shuffled=False)
    return Feed(made, order, rank=0, pad_id=0, longest=8, static=False, threads=1)


def test_a_batch_comes_as_micro_batches_of_rows() -> None:
    """Four rows by two, and by three when memory asks for another size."""
    fed = feed(8, 4)
    assert [batch.input_ids[::3].tolist() for batch in fed.batches(1, 2)] == [[4, 5], [6, 7]]
    assert [batch.tokens for batch in fed.batches(1, 3)] == [9, 3]
    fed.close()


def test_following_batches_are_prepared_by_another_thread() -> None:
    """When a batch is handed out the next is under way."""
    fed = feed(8, 2)
    made, make = threading.Event(), fed._make

    def watched(number: int, micro_batch: int):
        if number == 1 and threading.current_thread() is not threading.main_thread():
            made.set()
        return make(number, micro_batch)

    fed._make = watched
    fed.batches(0, 1)
    assert made.wait(60)
    fed.close()
