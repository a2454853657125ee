"""The ledger under any order of rounds, on a real PostgreSQL."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.core.db import Database
from services.core.errors import LeaseLostError
from services.core.models import RoundState
from services.trainer.ledger import Lease, Ledger
from services.trainer.recipe import Recipe
from tests.integration.trainer import corpus
from tests.integration.trainer.test_round import rows

numbers = itertools.count()
ROUND_SIZE = 5  # contents a round trains on at most
EVENTS = ("drop", "retire", "merge", "promote", "refuse", "fail", "resume", "steal")
HELD_OUT = """
    SELECT coalesce(m.merged_into, h.cluster_id) FROM held_out_clusters h
    LEFT JOIN cluster_merges m ON m.cluster_id = h.cluster_id WHERE h.track = %(track)s
"""


def texts(count: int) -> list[str]:
    return [f"def function_{next(numbers)}(argument):\n" + "    return argument\n" * 10 for _ in range(count)]


class Track:
    """One track of the ledger, and what may happen to it."""

    def __init__(self, database: Database, store: Callable[[list[str]], None]) -> None:
        name = f"track-{next(numbers)}"
        self.recipe = Recipe(name=name, base_model="./model", held_out_min=2, validation_min=1)
        self.database = database
        self.store = store
        self.ledger = Ledger(database, name)
        self.lease = self._take()

    def happens(self, event: str) -> None:
        getattr(self, event)()

    def drop(self) -> None:
        self.store(texts(3))

    def retire(self) -> None:
        """Every third content is no longer in the ingest volume."""
        with self.database.transaction() as tx:
            ids = [row.id for row in corpus.run(tx, "SELECT id FROM contents WHERE live ORDER BY id")]
            corpus.set_live(tx, ids[::3], live=False)

    def merge(self) -> None:
        """The newest cluster and one in the middle turn out to be near-duplicates."""
        with self.database.transaction() as tx:
            clusters = [
                row.cluster_id
                for row in corpus.run(tx, "SELECT DISTINCT cluster_id FROM contents ORDER BY cluster_id")
            ]
            corpus.merge_clusters(tx, clusters[-1], clusters[len(clusters) // 2])

    def promote(self) -> None:
        self._close(RoundState.PROMOTED)

    def refuse(self) -> None:
        self._close(RoundState.REFUSED)

    def fail(self) -> None:
        self._open()
        self.ledger.fail(self.lease, "it crashed")

    def resume(self) -> None:
        """A child that died is followed by one with the same round and snapshot."""
        first, second = self._open(), self._open()
        assert (first and first.round_id) == (second and second.round_id)
        assert (first and first.snapshot_hash) == (second and second.snapshot_hash)

    def steal(self) -> None:
        """The lease ran out and another trainer has it: the old one commits nothing."""
        self._open()
        stale = self.lease
        self.ledger.release(stale)
        self.lease = self._take()
        with pytest.raises(LeaseLostError):
            self.ledger.fail(stale, "too late")

    def check(self) -> None:
        name = self.recipe.name
        of_track = f"FROM round_contents rc JOIN rounds r ON r.id = rc.round_id WHERE r.track = '{name}'"
        trained = rows(
            self.database, f"SELECT content_id, r.state {of_track} AND role = 'train' ORDER BY r.id"
        )
        learned = [row.content_id for row in trained if row.state == "promoted"]
        assert len(learned) == len(set(learned)), "a content was learned twice"
        recorded = rows(self.database, f"SELECT content_id FROM trained WHERE track = '{name}'")
        assert {row.content_id for row in recorded} == set(learned)
        failed = [row.content_id for row in trained if row.state == "failed"]
        assert len(failed) == len(set(failed)), "what a failed round had was offered again"
        assert corpus.differences(self.database) == []

    def check_opened(self, round_id: int) -> None:
        """A snapshot is right when it is made; clusters may merge later."""
        with self.database.transaction() as tx:
            snapshot = corpus.run(
                tx, "SELECT rc.role, c.cluster_id, c.live FROM round_contents rc"
                " JOIN contents c ON c.id = rc.content_id WHERE rc.round_id = %(id)s", id=round_id,
            )  # fmt: skip
            held_out = {row[0] for row in corpus.run(tx, HELD_OUT, track=self.recipe.name)}
        assert all(row.live for row in snapshot)
        assert all((row.cluster_id in held_out) == (row.role != "train") for row in snapshot)

    def _take(self) -> Lease:
        lease = self.ledger.take(self.recipe, "a trainer")
        assert lease is not None
        return lease

    def _open(self):  # type: ignore[no-untyped-def]
        waiting = self.ledger.open_round()
        opened = self.ledger.open_or_resume(self.lease, self.recipe, 70, ROUND_SIZE)
        if opened is not None and waiting is None:
            self.check_opened(opened.round_id)
        return opened

    def _close(self, state: RoundState) -> None:
        opened = self._open()
        if opened is None:
            return
        self.ledger.close(
            self.lease,
            opened,
            state=state,
            training={},
            verdict={"reason": "as the test wants"},
            losses={},
            manifest={"track": self.recipe.name} if state is RoundState.PROMOTED else None,
        )


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(st.sampled_from(EVENTS), max_size=10))
def test_no_order_of_events_trains_twice_or_on_what_is_held_out(
    events: list[str], database: Database, store: Callable[[list[str]], None]
) -> None:
    """Drops, retirements, merged clusters, rounds however they end and stolen leases keep every invariant."""
    store(texts(12))
    track = Track(database, store)
    for event in events:
        track.happens(event)
        track.check()


def test_held_out_contents_never_crowd_out_the_others(
    database: Database, store: Callable[[list[str]], None]
) -> None:
    """However many of the best contents are held out, everything else is trained on in the end."""
    store(texts(150))
    track = Track(database, store)
    track.recipe = track.recipe.model_copy(update={"held_out_share": 0.2, "validation_share": 0.1})
    while (opened := track._open()) is not None:
        track._close(RoundState.PROMOTED)
        assert opened.number < 150
    (row,) = rows(
        database,
        "SELECT count(*) AS contents, count(*) FILTER (WHERE EXISTS (SELECT FROM trained t WHERE"
        " t.content_id = c.id) OR EXISTS (SELECT FROM held_out_clusters h WHERE"
        " h.cluster_id = c.cluster_id)) AS used FROM contents c",
    )
    assert row.used == row.contents
