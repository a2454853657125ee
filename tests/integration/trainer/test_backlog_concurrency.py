"""The backlog while processors store and trainers open rounds at the same time."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from services.core.db import Database
from services.core.models import RoundState
from services.trainer.ledger import Lease, Ledger, Round
from services.trainer.recipes.recipe import Recipe
from tests.integration.trainer import corpus

WAITING = (
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
PATIENCE = 60.0  # seconds until a test that waits gives up


class Track:
    """A track with its lease."""

    def __init__(self, database: Database, name: str) -> None:
        self.recipe = Recipe(name=name, base_model="./model", held_out_min=2, validation_min=1)
        self.ledger = Ledger(database, name)
        lease = self.ledger.take(self.recipe, "a trainer")
        assert lease is not None
        self.lease: Lease = lease

    def open(self) -> Round | None:
        return self.ledger.open_or_resume(self.lease, self.recipe, 50, 20)

    def close(self, opened: Round, state: RoundState) -> None:
        manifest = {"track": "t"} if state is RoundState.PROMOTED else None
        verdict = {"reason": "as the test wants"}
        self.ledger.close(
            self.lease, opened, state=state, training={}, verdict=verdict, losses={}, manifest=manifest
        )


@pytest.fixture
def begin() -> Any:
    """`begin(work)`: the work in a thread of its own."""
    with ThreadPoolExecutor() as pool:
        yield pool.submit


def wait_until_blocked(database: Database, work: "Future[Any]") -> None:
    """Until the work waits for the backlog's lock."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert not work.done(), "it did not wait"
        with database.transaction() as tx:
            if corpus.run(tx, WAITING):
                return
    raise AssertionError("it never asked for the lock")


def test_a_new_track_waits_for_contents_on_their_way(
    database: Database, begin: Callable[..., "Future[Any]"]
) -> None:
    """What a processor has stored and not committed when a track begins is in its backlog."""
    with database.transaction() as tx:
        Track(database, "first")  # without a track, storing has nothing to follow
        corpus.add(tx, 3)
        new = begin(Track, database, "second")
        wait_until_blocked(database, new)
    assert new.result(PATIENCE).ledger.count_new(0, 100) == 3
    assert corpus.differences(database) == []


def test_what_returns_while_a_round_opens_is_not_new(
    database: Database, begin: Callable[..., "Future[Any]"]
) -> None:
    """A content chosen, retired and found again before the round is committed was had by the round."""
    track = Track(database, "track")
    with database.transaction() as tx:
        corpus.add(tx, 10)

    def retire_and_restore(ids: list[int]) -> None:
        for live in (False, True):
            with database.transaction() as tx:
                corpus.set_live(tx, ids, live)

    with database.transaction() as opening:
        rows = opening.all("candidates", track="track", threshold=0, most=100)
        (round_,) = corpus.run(
            opening, "INSERT INTO rounds (track, number, recipe, snapshot_hash) VALUES ('track', 1, '{}', '')"
            " RETURNING id",
        )  # fmt: skip
        snapshot = [(round_.id, row.content_id, "train", n) for n, row in enumerate(rows)]
        opening.copy("round_contents", ("round_id", "content_id", "role", "position"), snapshot)
        flicker = begin(retire_and_restore, [row.content_id for row in rows])
        wait_until_blocked(database, flicker)
    flicker.result(PATIENCE)
    assert track.ledger.count_new(0, 100) == 0
    assert corpus.differences(database) == []


def test_a_round_opens_after_the_retirement_it_met(
    database: Database, begin: Callable[..., "Future[Any]"]
) -> None:
    """A content retired while a round opens is either in its snapshot or not, and in no backlog after."""
    track = Track(database, "track")
    with database.transaction() as tx:
        corpus.add(tx, 10)
        ids = [row.id for row in corpus.run(tx, "SELECT id FROM contents ORDER BY id LIMIT 5")]
    with database.transaction() as retiring:
        corpus.set_live(retiring, ids, live=False)
        opening = begin(track.open)
        wait_until_blocked(database, opening)
    assert opening.result(PATIENCE) is not None
    with database.transaction() as tx:
        left = {row.content_id for row in tx.all("candidates", track="track", threshold=0, most=100)}
    assert left
    assert not left & set(ids)
    assert corpus.differences(database) == []


def test_processors_and_trainers_at_once(database: Database, begin: Callable[..., "Future[Any]"]) -> None:
    """Two processors store, retire, restore, rescore and merge while two trainers run rounds."""
    done = threading.Event()

    def process(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(40):
            with database.transaction() as tx:
                corpus.add(tx, 5, score=chance.randrange(101), live=chance.random() < 0.8)
                ids = [
                    row.id
                    for row in corpus.run(tx, "SELECT id FROM contents WHERE id %% 2 = %(seed)s", seed=seed)
                ]
                corpus.set_live(tx, chance.sample(ids, len(ids) // 5), live=chance.random() < 0.5)
                corpus.run(
                    tx, "UPDATE contents SET score = 100 - score, cluster_id = cluster_id + %(seed)s"
                    " WHERE id = ANY (%(ids)s)", ids=chance.sample(ids, len(ids) // 5), seed=seed,
                )  # fmt: skip

    def train(name: str) -> int:
        track, rounds, chance = Track(database, name), 0, random.Random(name)
        ends = (RoundState.PROMOTED, RoundState.REFUSED)
        while not done.is_set():
            if (opened := track.open()) is None:
                continue
            rounds += 1
            if chance.random() < 0.3:
                track.ledger.fail(track.lease, "it crashed")
            else:
                track.close(opened, chance.choice(ends))
        return rounds

    trainers = [begin(train, name) for name in ("one", "two")]
    try:
        for processor in [begin(process, seed) for seed in (0, 1)]:
            processor.result(2 * PATIENCE)
    finally:
        done.set()
    assert all(trainer.result(PATIENCE) > 1 for trainer in trainers)
    assert corpus.differences(database) == []
