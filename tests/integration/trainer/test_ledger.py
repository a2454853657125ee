"""The ledger under any order of rounds, on a real PostgreSQL."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.core.db import Database
from services.core.errors import LeaseLostError
from services.core.models import ContentRole, RoundState
from services.trainer.ledger import Lease, Ledger
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.source import Unit
from services.trainer.selection.choice import Candidate, choose
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

    def __init__(self, database: Database, store: Callable[[list[str]], None], **fields: Any) -> None:
        name = f"track-{next(numbers)}"
        self.recipe = Recipe(name=name, base_model="./model", held_out_min=2, validation_min=1, **fields)
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
        aside = ("validation", "held_out")
        assert all((row.cluster_id in held_out) == (row.role in aside) for row in snapshot)
        trained = [row for row in snapshot if row.role not in aside]
        assert len(trained) <= ROUND_SIZE
        replayed = sum(row.role == "replay" for row in trained)
        assert replayed <= self.recipe.replay_share * len(trained) + 0.5

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
@given(events=st.lists(st.sampled_from(EVENTS), max_size=10), replay_share=st.sampled_from([0.0, 0.4]))
def test_no_order_of_events_trains_twice_or_on_what_is_held_out(
    events: list[str], replay_share: float, database: Database, store: Callable[[list[str]], None]
) -> None:
    """Drops, retirements, merged clusters, rounds however they end and stolen leases keep every invariant.

    With replay, too: what is replayed is not trained anew.
    """
    store(texts(12))
    track = Track(database, store, replay_share=replay_share)
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


def snapshot_of(track: Track) -> tuple[Any, dict[ContentRole, list[int]]]:
    """The round that opens now and its contents by role."""
    opened = track._open()
    contents = track.ledger.snapshot(opened.round_id)
    return opened, {role: [content.content_id for content in of_role] for role, of_role in contents.items()}


def test_a_round_replays_what_earlier_ones_were_promoted_with(
    database: Database, store: Callable[[list[str]], None]
) -> None:
    """Its share of what is trained on, none of it counted as new, drawn otherwise in every round."""
    store(texts(150))
    track = Track(database, store, replay_share=0.4)
    learned: list[int] = []
    replayed = []
    for _ in range(6):
        _, contents = snapshot_of(track)
        assert set(contents[ContentRole.REPLAY]) <= set(learned)
        replayed.append(contents[ContentRole.REPLAY])
        learned += contents[ContentRole.TRAIN]
        track.promote()
    assert [len(each) for each in replayed] == [0, 2, 2, 2, 2, 2]
    assert len({tuple(each) for each in replayed[3:]}) > 1
    track.check()


def test_the_snapshot_hash_covers_what_is_replayed(
    database: Database, store: Callable[[list[str]], None]
) -> None:
    """Two rounds that differ in replay alone are two snapshots."""
    candidate = Candidate(1, b"new", 1, 90)
    old = [Candidate(n, bytes([n]), n, 90) for n in (2, 3)]
    recipe = Recipe(name="t", base_model="./model", replay_share=0.5)
    roles = {1: {ContentRole.TRAIN}, 2: {ContentRole.TRAIN}, 3: {ContentRole.TRAIN}}
    hashes = {choose([candidate], roles, recipe, 100, each).hash for each in ([], old[:1], old[1:])}
    assert len(hashes) == 3


def test_only_what_is_learned_can_be_replayed(database: Database, store: Callable[[list[str]], None]) -> None:
    """The database itself refuses anything else."""
    store(texts(12))
    track = Track(database, store)
    opened = track._open()
    with pytest.raises(Exception, match="no promoted round"), database.transaction() as tx:
        corpus.run(
            tx, "INSERT INTO round_contents SELECT %(id)s, content_id, 'replay', 99 FROM backlog LIMIT 1",
            id=opened.round_id,
        )  # fmt: skip


def test_a_snapshot_keeps_where_its_contents_were_found(
    database: Database, store: Callable[[list[str]], None]
) -> None:
    """Moved or retired meanwhile, they make the same samples when the round is taken up again."""
    store(texts(12))
    track = Track(database, store)
    opened = track._open()
    (first, *_) = before = track.ledger.snapshot(opened.round_id)[ContentRole.TRAIN]
    assert (first.repository, first.path) == ("repo", f"{first.sha256.hex()}.py")
    with database.transaction() as tx:
        corpus.run(
            tx, "INSERT INTO units VALUES (%(id)s, 0, 'function', 'f', 0, 9, 1, 2, 0)", id=first.content_id
        )
        corpus.run(tx, "UPDATE files SET path = 'elsewhere-' || path, retired_at = now()")
    (again, *rest) = track.ledger.snapshot(opened.round_id)[ContentRole.TRAIN]
    assert again == replace(first, units=(Unit("function", "f", 0, 9, 1, 2, 0),))
    assert rest == before[1:]


def test_languages_get_their_shares_and_what_is_left_waits(database: Database) -> None:
    """Nine of ten candidates are Python, all better than the others: still half of a round is Go."""
    with database.transaction() as tx:
        corpus.add(tx, 180, language="python", score=95)
        corpus.add(tx, 20, language="go", score=80)
        corpus.add(tx, 20, language="rust", score=90)
    recipe = Recipe(
        name="weighed", base_model="./model", held_out_min=2, validation_min=1, max_contents=10,
        language_weights={"python": 0.5, "go": 0.5},
    )  # fmt: skip
    ledger = Ledger(database, recipe.name)
    lease = ledger.take(recipe, "a trainer")
    assert lease is not None
    opened = ledger.open_or_resume(lease, recipe, 50, 1000)
    assert opened is not None
    languages = [content.language for content in ledger.snapshot(opened.round_id)[ContentRole.TRAIN]]
    assert sorted(languages) == ["go"] * 5 + ["python"] * 5
    ledger.close(
        lease, opened, state=RoundState.PROMOTED, training={}, verdict={"reason": "better"}, losses={},
        manifest={"track": recipe.name},
    )  # fmt: skip
    assert corpus.differences(database) == []
    assert ledger.count_new(50, 1000) > 150
