"""What the queries read, as the role that may read no more."""

from collections.abc import Callable

import pytest

from services.core.db import Database
from services.core.errors import MigrationError
from services.core.target import Target
from services.metrics.collector import CURVE_POINTS, snapshot, vital_signs
from tests.integration.metrics.rows import fill


def test_the_metrics_role_suffices(role_target: Callable[[str], Target], database: Database) -> None:
    """Least privilege reads the same snapshot as the owner."""
    fill(database)
    restricted = Database(role_target("ratchet_metrics"))
    seen, owners = snapshot(restricted), snapshot(database)
    assert vital_signs(restricted).migrated
    restricted.close()
    for part in ("state", "training_metrics", "config", "ingest", "tracks", "rounds", "curve"):
        assert seen[part] == owners[part]


def test_new_contents_are_those_in_no_round(database: Database) -> None:
    """Above the threshold and never part of a snapshot of the track."""
    fill(database)
    found = snapshot(database, quality_threshold=0)
    assert found["tracks"][0]["new_contents"] == 300 - 240
    assert found["ingest"]["contents_above_threshold"] == 300


def test_the_curve_is_thinned_and_keeps_its_ends(database: Database) -> None:
    """Ten thousand steps become about two hundred points, first and last among them."""
    fill(database)
    with database.transaction() as transaction:
        transaction._cursor.execute(
            "INSERT INTO progress SELECT r.id, step, 'train', '{\"loss\": 1}' FROM rounds r,"
            " generate_series(100, 10000) step WHERE r.state = 'open'"
        )
    steps = [point["step"] for point in snapshot(database)["curve"]["train"]]
    assert len(steps) <= CURVE_POINTS + 1
    assert (steps[0], steps[-1]) == (1, 10_000)


def test_missing_migrations_are_named(empty_target: Target) -> None:
    """The snapshot of a database without tables says what to run."""
    database = Database(empty_target)
    with pytest.raises(MigrationError, match="ratchet migrate"):
        snapshot(database)
    database.close()
