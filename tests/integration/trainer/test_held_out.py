"""What a round is judged by, on a real PostgreSQL: histories, copied units, anchors, bounds."""

import itertools
from collections.abc import Callable
from contextlib import closing
from typing import Any

from services.core.db import Database
from services.core.models import ContentRole, RoundState, Subject
from services.core.target import Target
from services.trainer.evaluate import ContentLoss
from services.trainer.ledger import Ledger, Round
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.source import SampleSource
from tests.integration.trainer import corpus

Store = Callable[[list[str]], None]
numbers = itertools.count()
# A unit in every text: copied everywhere in those of an even number, all there is in every second of them.
COPIED_UNITS = """
    INSERT INTO units (content_id, ordinal, kind, name, start_byte, end_byte, start_line, end_line,
                       comment_byte, fingerprint)
    SELECT id, 0, 'function', 'f', CASE WHEN id % 4 = 0 THEN 0 ELSE 17 END,
           CASE WHEN id % 4 = 0 THEN bytes ELSE 20 END, 1, 3, 17,
           CASE WHEN id % 2 = 0 THEN 7 ELSE id + 100 END
    FROM contents
"""
HEAD, TAIL = "# the first line\n", "# the line that was written last\n"


def texts(count: int) -> list[str]:
    return [f"{HEAD}def function_{next(numbers)}(a):\n    return a\n{TAIL}" for _ in range(count)]


class Track:
    """One track, with every round promoted."""

    def __init__(self, database: Database, **fields: Any) -> None:
        recipe = {
            "name": f"track-{next(numbers)}",
            "base_model": "./model",
            "held_out_min": 12,
            "validation_min": 2,
        }
        self.database = database
        self.recipe = Recipe.model_validate(recipe | fields)
        self.ledger = Ledger(database, self.recipe.name)
        lease = self.ledger.take(self.recipe, "a trainer")
        assert lease is not None
        self.lease = lease

    def round(self) -> tuple[Round, dict[ContentRole, list[SampleSource]]]:
        """Opened, looked at, promoted."""
        opened = self.ledger.open_or_resume(self.lease, self.recipe, 70, 1000)
        assert opened is not None
        resumed = self.ledger.open_or_resume(self.lease, self.recipe, 70, 1000)
        assert resumed is not None
        assert resumed.held_out == opened.held_out
        snapshot = self.ledger.snapshot(opened.round_id)
        losses = {
            Subject.BASE: [ContentLoss(c.content_id, 9.0, 5, 20, 2) for c in snapshot[ContentRole.HELD_OUT]]
        }
        self.ledger.close(
            self.lease, opened, state=RoundState.PROMOTED, training={}, verdict={"reason": "better"},
            losses=losses, manifest={},
        )  # fmt: skip
        return opened, snapshot


def ids(contents: list[SampleSource]) -> set[int]:
    return {content.content_id for content in contents}


def write_history(database: Database, first_id: int, day: int) -> None:
    """From this content on a file a minute is changed on this day; its last line is new, the rest is old."""
    with database.transaction() as tx:
        corpus.run(
            tx, "UPDATE files SET changed_at = to_timestamp(%(day)s * 86400 + content_id * 60),"
            " lines_of = content_id, line_times = jsonb_build_array(jsonb_build_array(1, 3, 1000),"
            " jsonb_build_array(4, 4, %(day)s * 86400 + content_id * 60)) WHERE content_id >= %(first)s",
            day=day, first=first_id,
        )  # fmt: skip


def test_a_round_by_time_is_judged_by_later_lines(database: Database, store: Store) -> None:
    """What it trains on is older; its anchors count with all lines, the others with their last one."""
    store(texts(200))
    write_history(database, 1, day=100)
    opened, snapshot = Track(database).round()
    found = opened.held_out
    assert found is not None
    assert (found.kind, found.leaked, found.whole) == ("time", 0, 0)
    assert found.through is not None
    latest = found.through / 60 - 100 * 1440  # the content's id
    assert max(ids(snapshot[ContentRole.TRAIN])) <= latest
    held_out = snapshot[ContentRole.HELD_OUT]
    assert min(ids(held_out)) > latest
    later = [each for each in held_out if each.judged is not None]
    assert (len(later), len(held_out) - len(later)) == (found.later, found.anchors)
    for content in later:
        ((start, end),) = content.judged or ()
        assert content.text.encode()[start:end].decode() == TAIL
    assert snapshot[ContentRole.VALIDATION]
    assert "first written after 1970-04-11" in found.words


def test_rounds_go_on_with_the_same_anchors(database: Database, store: Store) -> None:
    """T moves on, what waited is trained on, the anchors stay: one that was edited too, none that is gone."""
    store(texts(200))
    write_history(database, 1, day=100)
    track = Track(database)
    first, before = track.round()
    with database.transaction() as tx:
        anchors = [row.content_id for row in corpus.run(tx, "SELECT content_id FROM anchors ORDER BY 1")]
        corpus.set_live(tx, anchors[:2], live=False)
    store(texts(100))  # of which the first is what became of the first anchor
    write_history(database, 201, day=200)
    with database.transaction() as tx:
        corpus.run(
            tx, "UPDATE contents SET cluster_id = (SELECT cluster_id FROM contents WHERE id = %(anchor)s)"
            " WHERE id = 201", anchor=anchors[0],
        )  # fmt: skip
    second, after = track.round()
    assert first.held_out
    assert second.held_out
    assert (first.held_out.through or 0) < (second.held_out.through or 0)
    assert first.held_out.version != second.held_out.version
    whole = {each.content_id for each in after[ContentRole.HELD_OUT] if each.judged is None}
    assert whole == set(anchors) - {anchors[1]}
    assert whole < ids(before[ContentRole.HELD_OUT])
    waited = set(range(1, 201)) - set().union(*map(ids, before.values()))
    assert waited & ids(after[ContentRole.TRAIN])
    assert not ids(before[ContentRole.HELD_OUT]) & ids(after[ContentRole.TRAIN])


def test_a_snapshot_knows_the_clusters_as_they_have_become(database: Database, store: Store) -> None:
    """Near-duplicates that are found out while a round is open are one cluster when it is judged."""
    store(texts(40))
    track = Track(database, split="cluster")
    opened = track.ledger.open_or_resume(track.lease, track.recipe, 70, 1000)
    assert opened is not None
    first, second, *_ = sorted(ids(track.ledger.snapshot(opened.round_id)[ContentRole.HELD_OUT]))
    with database.transaction() as tx:
        corpus.merge_clusters(tx, first, second)  # of these texts a cluster each, of the content's number
    held_out = track.ledger.snapshot(opened.round_id)[ContentRole.HELD_OUT]
    clusters = {each.content_id: each.cluster_id for each in held_out}
    assert clusters.pop(second) == first
    assert clusters == {content_id: content_id for content_id in clusters}


def test_units_that_are_trained_on_are_not_judged(database: Database, store: Store) -> None:
    """Of a held-out text the copied function is cut out; one that is all copied is left out and counted."""
    store(texts(100))
    track = Track(database, split="cluster")
    with database.transaction() as tx:
        corpus.run(tx, COPIED_UNITS)
    opened, snapshot = track.round()
    assert opened.held_out
    assert opened.held_out.kind == "cluster"
    assert opened.held_out.leaked > 0
    for content in (*snapshot[ContentRole.HELD_OUT], *snapshot[ContentRole.VALIDATION]):
        size = len(content.text.encode())
        assert content.content_id % 4 != 0
        assert content.judged == (None if content.content_id % 2 else ((0, 17), (20, size)))
    assert ids(snapshot[ContentRole.TRAIN])


def test_no_more_are_read_than_are_judged(database: Database, store: Store) -> None:
    """Many more are held out; of those as many are read as the recipe says, newest first."""
    store(texts(300))
    track = Track(database, held_out_share=0.3, validation_share=0.2, held_out_max=10)
    counts = []
    for _ in range(3):
        opened, snapshot = track.round()
        assert opened.held_out
        counts.append([len(snapshot[role]) for role in (ContentRole.HELD_OUT, ContentRole.VALIDATION)])
        store(texts(20))
    assert counts == [[10, 10]] * 3
    with database.transaction() as tx:
        rows = tx.all(
            "set_aside_contents", track=track.recipe.name, threshold=70, role="held_out", newest=True, most=10
        )
        ((aside,),) = corpus.run(tx, "SELECT count(*) FROM held_out_clusters WHERE role = 'held_out'")
    assert len(rows) == 10 < aside


def test_lines_whose_times_are_not_read_yet_leave_the_split_to_chance(
    database: Database, store: Store
) -> None:
    """When the files changed is known, when their lines were written is not."""
    store(texts(200))
    write_history(database, 1, day=100)
    with database.transaction() as tx:
        corpus.run(tx, "UPDATE files SET lines_of = NULL, line_times = NULL")
    opened, snapshot = Track(database).round()
    assert opened.held_out
    assert opened.held_out.kind == "cluster"
    assert all(content.judged is None for content in snapshot[ContentRole.HELD_OUT])
    assert opened.held_out.through is not None


def test_right_tokens_are_recorded(database: Database, store: Store) -> None:
    """Beside nats, tokens and bytes."""
    store(texts(60))
    Track(database).round()
    with database.transaction() as tx:
        ((nats, correct),) = corpus.run(tx, "SELECT DISTINCT nats, correct FROM evaluations")
    assert (nats, correct) == (9.0, 2)


def test_the_trainer_needs_no_more_rights(
    role_target: Callable[[str], Target], database: Database, store: Store
) -> None:
    """A round by time with copied units, as the trainer's own role."""
    store(texts(200))
    write_history(database, 1, day=100)
    with closing(Database(role_target("ratchet_trainer"))) as trainer:
        opened, _ = Track(trainer).round()
    assert opened.held_out
    assert opened.held_out.kind == "time"
