"""What suites scored, in the ledger."""

import math
from collections.abc import Callable
from contextlib import closing

import psycopg2
import pytest

from services.core import db
from services.core.db import Database, as_json
from services.core.models import Subject
from services.core.target import Target
from services.trainer.suites import records
from services.trainer.suites.suite import Report, Score

REPLACED = "\N{REPLACEMENT CHARACTER}"
SCORES = (
    Score("a", "x.py:3", "x.py", "exact_match", 0.0, detail={"written": "é"}),
    Score("a", "x.py:3", "x.py", "edit_similarity", 0.4),
    Score("b", "y.py:1", "y.py", "exact_match", 1.0),
)
REPORT = Report("completion", "v1", SCORES, 2.5, 1, {"exact_match": 0.5})


@pytest.fixture
def round_id(database: Database) -> int:
    with database.transaction() as tx:
        tx.execute("ensure_track", track="demo", recipe=as_json({}))
        cursor = tx._cursor
        cursor.execute(
            "INSERT INTO rounds (track, number, recipe, snapshot_hash)"
            " VALUES ('demo', 1, '{}', 'x') RETURNING id"
        )
        return int(cursor.fetchone()[0])


def by_item(report: Report) -> set[tuple[str, str, float, str]]:
    return {(score.item, score.metric, score.value, str(score.detail)) for score in report.scores}


def test_a_report_is_read_as_it_was_recorded(database: Database, round_id: int) -> None:
    loss = Report("humaneval-loss", "v2", (Score("c", "H/1", "H/1", "nats", 80.5, 40.0),), 1.0)
    with database.transaction() as tx:
        records.record(tx, round_id, Subject.CANDIDATE, REPORT)
        records.record(tx, round_id, Subject.BASE, loss)
    with database.transaction() as tx:
        found = records.reports(tx, round_id)
    assert found.keys() == {(Subject.CANDIDATE, "completion"), (Subject.BASE, "humaneval-loss")}
    report = found[Subject.CANDIDATE, "completion"]
    assert by_item(report) == by_item(REPORT)
    assert (report.version, report.seconds, report.from_cache, report.figures) == (
        "v1",
        2.5,
        1,
        REPORT.figures,
    )
    assert found[Subject.BASE, "humaneval-loss"].scores == loss.scores


def test_a_resumed_round_records_a_suite_again(database: Database, round_id: int) -> None:
    again = Report("completion", "v1", SCORES[2:], 1.0)
    for report in (REPORT, again):
        with database.transaction() as tx:
            records.record(tx, round_id, Subject.CANDIDATE, report)
    with database.transaction() as tx:
        (found,) = records.reports(tx, round_id).values()
    assert found.scores == SCORES[2:]


def test_what_a_model_wrote_is_stored_whatever_it_wrote(database: Database, round_id: int) -> None:
    odd = Score("a", "x.py\0", "x.py", "exact_match", 0.0, detail={"written": "a\0b\ud800c", "of": ["\0"]})
    with database.transaction() as tx:
        records.record(tx, round_id, Subject.CANDIDATE, Report("completion", "v1", (odd,), 1.0))
    with database.transaction() as tx:
        (found,) = records.reports(tx, round_id).values()
    assert found.scores[0].detail == {
        "written": "a\N{REPLACEMENT CHARACTER}b?c",
        "of": ["\N{REPLACEMENT CHARACTER}"],
    }


@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_no_value_that_cannot_be(database: Database, round_id: int, value: float) -> None:
    wrong = Score("a", "x", "x", "exact_match", value)
    with pytest.raises(psycopg2.IntegrityError):
        with database.transaction() as tx:
            records.record(tx, round_id, Subject.CANDIDATE, Report("s", "v", (wrong,), 1.0))


def test_a_loss_that_is_not_finite_is_left_out(database: Database, round_id: int) -> None:
    diverged = tuple(Score("a", str(n), "x", "nats", value) for n, value in enumerate((math.nan, math.inf)))
    with database.transaction() as tx:
        records.record(tx, round_id, Subject.CANDIDATE, Report("s", "v", diverged, 1.0))
        assert records.reports(tx, round_id)[Subject.CANDIDATE, "s"].scores == ()


def test_metrics_read_scores_but_not_what_was_written(
    database: Database, round_id: int, role_target: Callable[[str], Target]
) -> None:
    with database.transaction() as tx:
        records.record(tx, round_id, Subject.CANDIDATE, REPORT)
    with closing(db.connect(role_target("ratchet_metrics"))) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT figures ->> 'exact_match' FROM suite_reports")
        assert cursor.fetchone()[0] == "0.5"
        cursor.execute("SELECT sum(value) FROM suite_scores")
        assert cursor.fetchone()[0] == pytest.approx(1.4)
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cursor.execute("SELECT detail FROM suite_scores")


def test_the_trainer_records_and_forgets(
    database: Database, round_id: int, role_target: Callable[[str], Target]
) -> None:
    with closing(Database(role_target("ratchet_trainer"), application="test", max_conn=1)) as trainer:
        for _ in range(2):
            with trainer.transaction() as tx:
                records.record(tx, round_id, Subject.CANDIDATE, REPORT)
        with trainer.transaction() as tx:
            assert len(records.reports(tx, round_id)) == 1
