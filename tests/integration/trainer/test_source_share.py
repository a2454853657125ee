"""The share of a source in a round, on a real PostgreSQL."""

import pytest

from services.core.db import Database
from services.core.models import ContentRole, RoundState
from services.trainer.ledger import Lease, Ledger, Round
from services.trainer.recipes.recipe import Recipe
from tests.integration.trainer import corpus

MOVE = """
    WITH source AS (INSERT INTO sources (name) VALUES (%(name)s)
                    ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id)
    UPDATE files SET source_id = (SELECT id FROM source)
    WHERE source_id = (SELECT id FROM sources WHERE name = 'repo')
"""
RECIPE = Recipe(name="shared", base_model="./model", held_out_min=2, validation_min=1, source_share=0.1)


def add(database: Database, source: str, count: int, score: int = 90, characters: int = 100) -> None:
    with database.transaction() as tx:
        corpus.add(tx, count, score=score, characters=characters)
        corpus.run(tx, MOVE, name=source)


class Track:
    """A track of the recipe and its lease."""

    def __init__(self, database: Database, recipe: Recipe) -> None:
        self.ledger = Ledger(database, recipe.name)
        self.recipe = recipe
        lease = self.ledger.take(recipe, "a trainer")
        assert lease is not None
        self.lease: Lease = lease

    def open(self, most: int = 1000, fewest: int = 1) -> Round | None:
        return self.ledger.open_or_resume(self.lease, self.recipe, 50, most, fewest)

    def trained(self, opened: Round | None) -> dict[str, int]:
        """Bytes by source."""
        assert opened is not None
        found: dict[str, int] = {}
        for content in self.ledger.snapshot(opened.round_id)[ContentRole.TRAIN]:
            found[content.repository] = found.get(content.repository, 0) + len(content.text)
        return found

    def promote(self, opened: Round | None) -> None:
        assert opened is not None
        self.ledger.close(
            self.lease, opened, state=RoundState.PROMOTED, training={}, verdict={"reason": "better"},
            losses={}, manifest={"track": self.recipe.name},
        )  # fmt: skip


def test_a_flood_of_the_best_is_a_share_of_the_round_and_the_rest_waits(database: Database) -> None:
    """The others are found though many times what a round takes scores higher."""
    add(database, "flood", 600, score=99)
    for number in range(19):
        add(database, f"source-{number}", 10, score=70)
    track = Track(database, RECIPE)
    opened = track.open(most=50)
    found = track.trained(opened)
    total = sum(found.values())
    assert total >= 40 * 100
    assert found["flood"] <= 0.1 * total
    assert opened is not None
    assert opened.held_out is not None
    assert opened.held_out.waiting > 50
    track.promote(opened)
    assert corpus.differences(database) == []
    assert track.ledger.count_new(50, 1000) > 600


def test_a_track_of_one_source_is_trained_on_whole(database: Database) -> None:
    add(database, "only", 100)
    track = Track(database, RECIPE)
    opened = track.open()
    assert track.trained(opened)["only"] > 70 * 100
    assert opened is not None
    assert opened.held_out is not None
    assert opened.held_out.waiting == 0


def test_who_is_alone_in_the_backlog_waits_for_the_others_of_the_track(database: Database) -> None:
    """A round that it would have to itself does not begin; it does once others bring something."""
    for number in range(10):
        add(database, f"source-{number}", 10)
    track = Track(database, RECIPE)
    track.promote(track.open())
    add(database, "source-0", 100)
    assert track.open(fewest=20) is None
    for number in range(1, 10):
        add(database, f"source-{number}", 10)
    found = track.trained(track.open(fewest=20))
    assert found["source-0"] <= 0.11 * sum(found.values())


def test_a_content_of_several_sources_counts_for_the_one_that_has_given_least(database: Database) -> None:
    """Copying what another has gives it room, and takes none."""
    add(database, "ours", 40)
    for number in range(9):
        add(database, f"source-{number}", 10)
    with database.transaction() as tx:
        corpus.run(tx, "INSERT INTO sources (name) VALUES ('copier')")
        corpus.run(
            tx,
            "INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id)"
            " SELECT (SELECT id FROM sources WHERE name = 'copier'), path, 1, 0, content_id FROM files"
            " WHERE source_id = (SELECT id FROM sources WHERE name = 'ours')",
        )
    recipe = RECIPE.model_copy(update={"name": "copied", "source_share": 0.2})
    track = Track(database, recipe)
    found = track.trained(track.open())
    assert found.get("ours", 0) + found.get("copier", 0) > 0.25 * sum(found.values())


@pytest.mark.parametrize("weights", [{"python": 0.5, "go": 0.5}, {"go": 1.0}])
def test_languages_and_sources_have_their_shares_at_once(
    database: Database, weights: dict[str, float]
) -> None:
    for number in range(12):
        with database.transaction() as tx:
            corpus.add(tx, 20, language="go" if number % 2 else "python")
            corpus.run(tx, MOVE, name=f"source-{number}")
    with database.transaction() as tx:
        corpus.add(tx, 300, language="go", score=99)
        corpus.run(tx, MOVE, name="flood")
    recipe = RECIPE.model_copy(update={"name": "both", "language_weights": weights, "source_share": 0.15})
    track = Track(database, recipe)
    opened = track.open(most=60)
    found = track.trained(opened)
    assert opened is not None
    assert found["flood"] <= max(0.15 * sum(found.values()), 100)
    languages = [each.language for each in track.ledger.snapshot(opened.round_id)[ContentRole.TRAIN]]
    assert languages.count("python") <= 30
    assert languages.count("go") >= 20
