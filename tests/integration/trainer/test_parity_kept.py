"""A measured parity in the ledger, and the held-out code that it is measured on."""

from collections.abc import Callable

import pytest

from services.core.db import Database, as_json
from services.core.target import Target
from services.trainer.parity import record
from services.trainer.parity.record import Leg, Parity

PARITY = Parity(
    "2026-11-21T10:00:00+00:00", "round-0001", "nf4", "bfloat16", "bfloat16", 48,
    (Leg("merged", 12, 11, 7, 0.02, 0.0001),),
)  # fmt: skip
KEY = {"track": "demo", "directory": "round-0001"}


@pytest.fixture
def ledger(database: Database, store: Callable[[list[str]], None]) -> Database:
    """A promoted round with an adapter: it trained on one content, and was judged by two."""
    store(["trained = 1\n", "judged = 1\n", "judged = 2\n"])
    with database.transaction() as tx:
        cursor = tx._cursor
        cursor.execute("INSERT INTO tracks (name, recipe) VALUES ('demo', '{}')")
        cursor.execute(
            "INSERT INTO rounds (track, number, recipe, snapshot_hash, state, closed_at)"
            " VALUES ('demo', 1, '{}', '', 'promoted', now()) RETURNING id"
        )
        (round_id,) = cursor.fetchone()
        cursor.execute(
            "INSERT INTO round_contents (round_id, content_id, role, position)"
            " SELECT %s, id, CASE WHEN text LIKE 'trained%%' THEN 'train' ELSE 'held_out' END, id"
            " FROM contents",
            (round_id,),
        )
        cursor.execute(
            "INSERT INTO adapters (track, round_id, directory, manifest)"
            " VALUES ('demo', %s, 'round-0001', '{}')",
            (round_id,),
        )
    return database


def test_the_trainer_may_keep_it_and_reads_the_same(
    ledger: Database, role_target: Callable[[str], Target]
) -> None:
    """As JSON in the adapter's row."""
    as_trainer = Database(role_target("ratchet_trainer"), application="test")
    try:
        with as_trainer.transaction() as tx:
            assert tx.one("record_parity", **KEY, parity=as_json(PARITY.as_json())) is not None
    finally:
        as_trainer.close()
    with ledger.transaction() as tx:
        tx._cursor.execute("SELECT parity FROM adapters")
        assert record.from_json(tx._cursor.fetchone()[0]) == PARITY


def test_an_adapter_that_the_ledger_does_not_know_has_no_row(ledger: Database) -> None:
    """It came from elsewhere: the file beside it is all there is."""
    with ledger.transaction() as tx:
        unknown = {**KEY, "directory": "round-0009"}
        assert tx.one("record_parity", **unknown, parity=as_json(PARITY.as_json())) is None


def test_only_what_was_held_out_is_asked(ledger: Database) -> None:
    """What it was trained on says nothing new."""
    with ledger.transaction() as tx:
        texts = {row.text for row in tx.all("round_held_out_texts", **KEY, most=8)}
        assert texts == {"judged = 1\n", "judged = 2\n"}
        assert len(tx.all("round_held_out_texts", **KEY, most=1)) == 1
