"""The history that page tests look at is one that the services could have left."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from services.core import db
from services.core.target import Target
from services.metrics.app import create_app
from tests.integration.metrics.test_app import settings_for


@pytest.fixture
def rows(history: Target) -> Iterator[Callable[[str], list[Any]]]:
    with closing(db.connect(history)) as connection, connection.cursor() as cursor:

        def ask(statement: str) -> list[Any]:
            cursor.execute(statement)
            return list(cursor.fetchall())

        yield ask


def test_the_backlog_is_what_it_is_defined_to_be(rows: Callable[[str], list[Any]]) -> None:
    """Triggers and definition agree after ten days of contents, rounds and moves."""
    columns = "track, content_id, sha256, cluster_id, score, is_new"
    kept = f"SELECT {columns} FROM backlog ORDER BY 1, 2"
    assert rows(kept) == rows(f"SELECT {columns} FROM backlog_definition ORDER BY 1, 2")


def test_what_was_learned_is_what_the_champions_line_trained_on(rows: Callable[[str], list[Any]]) -> None:
    """`trained` holds the contents of rounds 1 and 3, not of 4, which was taken back."""
    learned = rows(
        "SELECT DISTINCT r.number FROM trained t JOIN rounds r ON r.id = t.round_id ORDER BY r.number"
    )
    assert [row.number for row in learned] == [1, 3]


def test_nothing_held_out_is_trained_on(rows: Callable[[str], list[Any]]) -> None:
    """No content has both roles in the track."""
    both = rows(
        "SELECT content_id FROM round_contents GROUP BY content_id"
        " HAVING bool_or(role IN ('train', 'replay')) AND bool_or(role IN ('held_out', 'validation'))"
    )
    assert both == []


def test_events_come_in_the_order_of_their_times(rows: Callable[[str], list[Any]]) -> None:
    """Ids grow with time, as those of a running Ratchet do."""
    times = [row.at for row in rows("SELECT at FROM events ORDER BY id")]
    assert times == sorted(times)
    assert len(times) == 20


def test_the_service_shows_it(history_as: Callable[[str], Target]) -> None:
    """The metrics service finds a healthy Ratchet whose sixth round trains."""
    app = create_app(settings_for(history_as("ratchet_metrics")))
    found = app.test_client().get("/metrics?format=json").get_json()
    assert found["health"]["status"] == "ok"
    assert (found["running_round"]["number"], found["running_round"]["step"]) == (6, 84)
    assert found["tracks"][0]["champion"]["round"] == 3
    app.extensions["observer"].database.close()
