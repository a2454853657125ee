"""The backlog equals its definition, whatever happens, and is read without a scan."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.core import sql
from services.core.db import Database
from services.core.models import RoundState
from services.core.target import Target
from services.trainer.ledger import Lease, Ledger
from services.trainer.recipes.recipe import Recipe
from tests.conftest import administer
from tests.integration.trainer import corpus

numbers = itertools.count()
THRESHOLDS = (0, 70, 95)
EVENTS = (
    "drop", "retire", "restore", "rescore", "change_language", "merge", "new_track", "change_recipe",
    "open", "promote", "refuse", "fail",
)  # fmt: skip


def recipe(name: str, **fields: Any) -> Recipe:
    return Recipe(name=name, base_model="./model", held_out_min=2, validation_min=1, **fields)


class Life:
    """Two tracks over one corpus, and what may happen to them; `chance` decides to whom and how."""

    def __init__(self, database: Database, chance: random.Random) -> None:
        self.database = database
        self.chance = chance
        self.tracks: dict[str, tuple[Recipe, Ledger, Lease]] = {}
        self.new_track(languages=("python",), max_chars=150)
        self.new_track(replay_share=0.4, language_weights={"go": 0.5, "*": 0.5})

    def drop(self) -> None:
        with self.database.transaction() as tx:
            for _ in range(3):
                corpus.add(
                    tx, 4, self.chance.choice(["python", "go"]), self.chance.randrange(101),
                    self.chance.choice([40, 100, 200]), self.chance.random() < 0.8,
                )  # fmt: skip

    def retire(self) -> None:
        self._of_some_contents(lambda tx, ids: corpus.set_live(tx, ids, live=False))

    def restore(self) -> None:
        self._of_some_contents(lambda tx, ids: corpus.set_live(tx, ids, live=True))

    def rescore(self) -> None:
        self._of_some_contents(
            lambda tx, ids: corpus.run(
                tx, "UPDATE contents SET score = id %% 101 WHERE id = ANY (%(ids)s)", ids=ids
            )
        )

    def change_language(self) -> None:
        self._of_some_contents(
            lambda tx, ids: corpus.run(
                tx, "UPDATE contents SET language = 'go' WHERE id = ANY (%(ids)s)", ids=ids
            )
        )

    def merge(self) -> None:
        with self.database.transaction() as tx:
            clusters = [
                row[0] for row in corpus.run(tx, "SELECT DISTINCT cluster_id FROM contents ORDER BY 1")
            ]
            if len(clusters) > 1:
                corpus.merge_clusters(tx, *self.chance.sample(clusters, 2))

    def new_track(self, **fields: Any) -> None:
        self._take(recipe(f"track-{next(numbers)}", **fields))

    def change_recipe(self) -> None:
        old, ledger, lease = self._some_track()
        ledger.release(lease)
        languages = self.chance.choice([None, ("go",), ("python", "go")])
        self._take(
            old.model_copy(update={"languages": languages, "max_chars": self.chance.choice([60, 300])})
        )

    def open(self) -> Any:
        recipe_, ledger, lease = self._some_track()
        return ledger, lease, ledger.open_or_resume(lease, recipe_, 50, 5)

    def promote(self) -> None:
        self._close(RoundState.PROMOTED)

    def refuse(self) -> None:
        self._close(RoundState.REFUSED)

    def fail(self) -> None:
        ledger, lease, _ = self.open()
        ledger.fail(lease, "it crashed")

    def check(self) -> None:
        with self.database.transaction() as tx:
            for (recipe_, _, _), threshold in itertools.product(self.tracks.values(), THRESHOLDS):
                assert corpus.found(tx, recipe_, threshold) == corpus.expected(tx, recipe_, threshold)
        assert corpus.differences(self.database) == []

    def _take(self, recipe_: Recipe) -> None:
        ledger = Ledger(self.database, recipe_.name)
        lease = ledger.take(recipe_, "a trainer")
        assert lease is not None
        self.tracks[recipe_.name] = (recipe_, ledger, lease)

    def _some_track(self) -> tuple[Recipe, Ledger, Lease]:
        return self.chance.choice(list(self.tracks.values()))

    def _of_some_contents(self, work: Callable[[Any, list[int]], object]) -> None:
        with self.database.transaction() as tx:
            ids = [row[0] for row in corpus.run(tx, "SELECT id FROM contents ORDER BY id")]
            work(tx, self.chance.sample(ids, len(ids) // 2))

    def _close(self, state: RoundState) -> None:
        ledger, lease, opened = self.open()
        if opened is not None:
            manifest = {"track": "t"} if state is RoundState.PROMOTED else None
            verdict = {"reason": "as the test wants"}
            ledger.close(
                lease, opened, state=state, training={}, verdict=verdict, losses={}, manifest=manifest
            )


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(st.sampled_from(EVENTS), min_size=3, max_size=14), seed=st.integers(0, 10_000))
def test_no_order_of_events_parts_the_backlog_from_its_definition(
    events: list[str], seed: int, database: Database
) -> None:
    """Polls and selections give what scanning files, texts and rounds gives, after every event."""
    life = Life(database, random.Random(seed))
    for event in ["drop", *events]:
        getattr(life, event)()
        life.check()


@pytest.fixture
def large(database: Database, target: Target) -> Recipe:
    """20,000 contents in the backlogs of two tracks; refused rounds have had the best 10,000."""
    wanted = recipe("large")
    with database.transaction() as tx:
        for score in range(0, 100, 5):
            corpus.add(tx, 1000, score=score)
    for each in (wanted, recipe("other", languages=("python", "go"))):
        ledger = Ledger(database, each.name)
        lease = ledger.take(each, "a trainer")
        assert lease is not None
        opened = ledger.open_or_resume(lease, each, 50, 10_000)
        assert opened is not None
        ledger.close(
            lease, opened, state=RoundState.REFUSED, training={}, verdict={"reason": "no better"}, losses={}
        )
    administer(target, "VACUUM ANALYZE")  # as autovacuum does sooner or later
    return wanted


def plan(database: Database, query: str, **parameters: Any) -> list[dict[str, Any]]:
    """The nodes of the executed plan, from the top."""

    def below(node: dict[str, Any]) -> list[dict[str, Any]]:
        return [node, *itertools.chain.from_iterable(map(below, node.get("Plans", [])))]

    with database.transaction() as tx:
        explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sql.queries()[query].text
        return below(corpus.run(tx, explain, **parameters)[0][0][0]["Plan"])


def test_poll_and_selection_read_what_they_return(large: Recipe, database: Database) -> None:
    """One index scan each and no sort; no more rows and pages than the limit calls for."""
    for query, index in (("count_new_contents", "backlog_new"), ("candidates", "backlog_best_first")):
        for most in (10, 1000):
            nodes = plan(database, query, track=large.name, threshold=0, most=most)
            (scan,) = [node for node in nodes if "Scan" in node["Node Type"]]
            assert scan["Node Type"] in ("Index Scan", "Index Only Scan")
            assert scan["Index Name"] == index
            assert "Sort" not in [node["Node Type"] for node in nodes]
            assert scan["Actual Rows"] == most
            assert scan.get("Rows Removed by Filter", 0) == 0
            assert scan["Shared Hit Blocks"] + scan["Shared Read Blocks"] <= most + 20
    # What it then asks of earlier rounds grows with the candidates, not with those rounds.
    with database.transaction() as tx:
        candidates = tx.all("candidates", track=large.name, threshold=0, most=10)
    clusters = [row.cluster_id for row in candidates]
    nodes = plan(database, "cluster_roles", track=large.name, clusters=clusters)
    lookups = [n for n in nodes if n.get("Relation Name") in ("trained_clusters", "held_out_clusters")]
    assert "Seq Scan" not in {node["Node Type"] for node in lookups}
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in lookups) == len(clusters)


def test_what_the_processor_stores_reaches_a_backlog_it_may_not_see(
    target: Target, role_target: Callable[[str], Target], database: Database
) -> None:
    """Each role does its part with its own rights: the triggers need none of the writer's."""
    processor = Database(role_target("ratchet_processor"))
    trainer = Database(role_target("ratchet_trainer"))
    try:
        recipe_ = recipe("mine")
        ledger = Ledger(trainer, recipe_.name)
        lease = ledger.take(recipe_, "a trainer")
        assert lease is not None
        with processor.transaction() as tx:
            corpus.add(tx, 20)
        assert ledger.count_new(50, 100) == 20
        opened = ledger.open_or_resume(lease, recipe_, 50, 100)
        assert opened is not None
        assert ledger.count_new(50, 100) == 0
        ledger.fail(lease, "it crashed")
    finally:
        processor.close()
        trainer.close()
    assert corpus.differences(database) == []


def test_only_who_holds_the_track_says_which_contents_it_wants(database: Database) -> None:
    """A trainer on standby with another recipe of the same name changes nothing."""
    holder, standby = recipe("contested", languages=("python",)), recipe("contested", languages=("go",))
    ledger = Ledger(database, "contested")
    assert ledger.take(holder, "one trainer") is not None
    assert ledger.take(standby, "another") is None
    with database.transaction() as tx:
        corpus.add(tx, 3, language="python")
        corpus.add(tx, 5, language="go")
    assert ledger.count_new(0, 100) == 3


@pytest.mark.parametrize("role", ["held_out", "train"])
def test_a_merged_cluster_keeps_its_past(role: str, database: Database) -> None:
    """What rounds did with a cluster is found under the name it has since it merged."""
    recipe_ = recipe("merging")
    ledger = Ledger(database, recipe_.name)
    lease = ledger.take(recipe_, "a trainer")
    with database.transaction() as tx:
        corpus.add(tx, 40)
    assert lease is not None
    opened = ledger.open_or_resume(lease, recipe_, 50, 100)
    assert opened is not None
    with database.transaction() as tx:
        ((first,),) = corpus.run(
            tx, "SELECT c.cluster_id FROM round_contents rc JOIN contents c ON c.id = rc.content_id"
            " WHERE rc.role = %(role)s ORDER BY 1 LIMIT 1", role=role,
        )  # fmt: skip
        corpus.run(tx, "INSERT INTO cluster_merges VALUES (%(a)s, 1001), (1000, 1001)", a=first)
        for name in (first, 1000, 1001):  # a name that was read just before the merge is good too
            assert [
                (r.cluster_id, r.role) for r in tx.all("cluster_roles", track="merging", clusters=[name])
            ] == [(name, role)]
