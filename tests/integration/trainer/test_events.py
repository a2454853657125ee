"""Events: what makes them, what they say, and that a reader misses none."""

import itertools
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from services.core import db
from services.core.db import Database, Transaction, as_json
from services.core.models import RoundState
from services.core.target import Target
from services.trainer.events import Event, sentence
from services.trainer.promotions.line import By
from tests.integration.trainer.test_ledger import texts
from tests.integration.trainer.test_promotions import Life
from tests.unit.trainer.webhooks.test_documentation import FIELDS

ME = By("me", "because")
EVERYTHING: dict[str, Any] = {"kinds": None, "track": None, "since": None}


def events(database: Database, after: int = 0, most: int = 1000) -> list[Event]:
    with database.transaction() as tx:
        return [Event.of(row) for row in tx.all("events_after", after=after, most=most, **EVERYTHING)]


def record(tx: Transaction, kind: str, track: str | None = None, **payload: Any) -> None:
    tx._cursor.execute("SELECT record_event(%s, %s, %s)", (kind, track, as_json(payload)))


@pytest.fixture
def life(database: Database, store: Callable[[list[str]], None], tmp_path: Path) -> Life:
    store(texts(60))
    return Life(database, tmp_path)


def test_a_round_that_is_promoted_makes_two_events(database: Database, life: Life) -> None:
    """Its start and its promotion, with the adapter, who decided and why."""
    life.round()
    started, promoted = events(database)
    assert (started.kind, started.track, started.round_number, started.adapter) == (
        "round.started", "moved", 1, None,
    )  # fmt: skip
    assert started.payload == {"contents": 5, "continues_from": None}
    assert (promoted.kind, promoted.round_number, promoted.adapter) == ("round.promoted", 1, "round-0001")
    assert promoted.payload == {"actor": "gate", "reason": "better", "before": None, "gain_percent": None}


def test_a_refusal_and_a_failure_say_why(database: Database, life: Life) -> None:
    life.round()
    life.close(life.open(), RoundState.REFUSED)
    life.open()
    life.ledger.fail(life.lease, "crashed 5 times")
    *_, again, refused, _, failed = events(database)
    assert again.payload["continues_from"] == "round-0001"
    assert (refused.kind, refused.round_number, refused.payload["reason"]) == (
        "round.refused",
        2,
        "no better",
    )
    assert (failed.kind, failed.payload["reason"]) == ("round.failed", "crashed 5 times")


def test_the_gain_is_in_percent(database: Database, life: Life) -> None:
    life.open()
    with database.transaction() as tx:
        tx._cursor.execute(
            "UPDATE rounds SET state = 'refused', closed_at = now(), verdict = %s",
            (as_json({"reason": "no better", "improvement": 0.012345, "against": "champion"}),),
        )
    payload = events(database)[-1].payload
    assert (payload["gain_percent"], payload["against"]) == (1.23, "champion")


def test_every_move_by_hand_is_an_event(database: Database, life: Life) -> None:
    """With who made it, why, and the champion before; the base model is null."""
    for _ in range(2):
        life.round()
    before = events(database)[-1].event_id
    life.champions.roll_back(ME)
    life.champions.promote("round-0002", ME)
    life.champions.pin(ME)
    life.champions.unpin(ME)
    life.champions.roll_back(ME, "base")
    life.champions.reject("round-0001", ME)
    told = [
        (event.kind, event.adapter, event.payload.get("before"), event.payload["actor"])
        for event in events(database, before)
    ]
    assert told == [
        ("adapter.rolled_back", "round-0001", "round-0002", "me"),
        ("adapter.promoted", "round-0002", "round-0001", "me"),
        ("adapter.pinned", "round-0002", None, "me"),
        ("adapter.unpinned", "round-0002", None, "me"),
        ("adapter.rolled_back", None, "round-0002", "me"),
        ("adapter.rejected", "round-0001", None, "me"),
    ]


def test_the_page_has_every_field_of_every_kind(database: Database, life: Life) -> None:
    """What docs/how-to/webhooks.md promises is in the payload, and nothing else."""
    for _ in range(2):
        life.round()
    life.close(life.open(), RoundState.REFUSED)
    life.open()
    life.ledger.fail(life.lease, "crashed")
    life.champions.roll_back(ME)
    life.champions.promote("round-0002", ME)
    life.champions.pin(ME)
    life.champions.unpin(ME)
    life.champions.reject("round-0001", ME)
    told = {event.kind: set(event.payload) for event in events(database)}
    assert told == {kind: FIELDS[kind] for kind in told}
    assert {kind for kind in FIELDS if kind.startswith(("round.", "adapter."))} == told.keys()


def test_every_event_has_a_sentence(database: Database, life: Life) -> None:
    life.round()
    life.champions.roll_back(ME)
    with database.transaction() as tx:
        record(tx, "source.forgotten", "moved", target="repo/a.py", actor="me", reason="asked to")
        record(tx, "service.stalled", service="processor", state="scanning", silent_s=61, message=None)
        record(tx, "some.thing_new", message="hello")
    assert [sentence(event) for event in events(database)] == [
        "moved: round 1 started on 5 contents, from the base model",
        "moved: round 1 was promoted, round-0001 is the champion, ? % fewer bits: better",
        "moved: rolled back from round-0001 to the base model by me: because",
        "moved: repo/a.py was forgotten by me: asked to",
        "the processor is ill: scanning, last heard 61 s ago; it says nothing",
        "hello",
    ]


def test_a_transaction_that_fails_leaves_no_event(database: Database, life: Life) -> None:
    with pytest.raises(RuntimeError), database.transaction() as tx:
        record(tx, "source.forgotten", None, target="x")
        raise RuntimeError
    assert events(database) == []


def test_what_rows_announce_cannot_be_claimed(database: Database) -> None:
    for kind in ("round.promoted", "adapter.rejected", "nonsense", "Round.x"):
        with pytest.raises(psycopg2.errors.CheckViolation), database.transaction() as tx:
            record(tx, kind)


def test_a_round_and_an_adapter_of_a_payload_become_columns(database: Database) -> None:
    with database.transaction() as tx:
        record(tx, "source.forgotten", "demo", round=3, adapter="round-0003", target="x")
    (event,) = events(database)
    assert (event.round_number, event.adapter, event.payload) == (3, "round-0003", {"target": "x"})


def test_a_payload_is_cut_and_never_fails_what_it_is_about(database: Database) -> None:
    with database.transaction() as tx:
        record(tx, "source.forgotten", None, target="é" * 10_000, adapters=["demo/round-0001"] * 1000)
    payload = events(database)[0].payload
    assert payload["target"] == "é" * 1000 + "…"
    assert payload["adapters"] == 1000


SAID_AND_KEPT = {
    "cannot fetch https://sam:s3cr3t@hub.example/x": "cannot fetch https://sam:***@hub.example/x",
    "GET https://h.example/a?token=abc&b=1 failed": "GET https://h.example/a?*** failed",
    'quoted "https://h.example/a?token=abc" \\ end': 'quoted "https://h.example/a?*** \\ end',
    "two\nlines https://h.example/?k=v\nthe second": "two\nlines https://h.example/?***\nthe second",
    "signed with whsec_c2VjcmV0LW9mLTMy+/=": "signed with whsec_***",
    'postgresql://u:p\\w"é@h/db?sslmode=x': "postgresql://u:***@h/db?***",
    "what? why: a@b": "what? why: a@b",
}


def test_credentials_never_get_into_an_event(database: Database) -> None:
    """Wherever they stand in it; what cannot be told from one goes too: a quotation mark behind it."""
    with database.transaction() as tx:
        for said in SAID_AND_KEPT:
            record(tx, "source.forgotten", None, reason=said, nested={"deep": [said]})
    payloads = [event.payload for event in events(database)]
    assert payloads == [{"reason": kept, "nested": {"deep": [kept]}} for kept in SAID_AND_KEPT.values()]


def test_whatever_a_payload_holds_it_stays_json(database: Database) -> None:
    """Texts of the characters that the redaction looks at, in any order."""
    draw = random.Random(7)
    said = ["".join(draw.choices('://@?#"\\\n\t ukhé1', k=draw.randrange(60))) for _ in range(600)]
    said = [f"https://{text}" if draw.random() < 0.5 else text for text in said]
    with database.transaction() as tx:
        for text in said:
            record(tx, "source.forgotten", None, reason=text)
    assert len(events(database)) == len(said)


def test_events_are_append_only(database: Database) -> None:
    for statement in ("UPDATE events SET kind = 'a.b'", "DELETE FROM events", "TRUNCATE events CASCADE"):
        with pytest.raises(psycopg2.errors.RaiseException, match="events is append-only"):
            with database.transaction() as tx:
                tx._cursor.execute(statement)


# in the order of commits


def test_an_event_waits_for_nobody_elses_transaction(database: Database) -> None:
    """One that is open for long holds up no other; it comes when it commits, with the higher id."""
    with database.transaction() as slow:
        record(slow, "source.forgotten", None, target="slow")
        with database.transaction() as quick:
            record(quick, "source.forgotten", None, target="quick")
        assert [event.payload["target"] for event in events(database)] == ["quick"]
    assert [event.payload["target"] for event in events(database)] == ["quick", "slow"]


def test_a_reader_that_goes_on_from_its_last_id_misses_none(database: Database) -> None:
    """Six writers whose transactions stay open for different times, and a reader meanwhile."""
    writers, each = 6, 40
    over = threading.Event()
    seen: list[Event] = []

    def read() -> None:
        while True:
            ended = over.is_set()
            page = events(database, seen[-1].event_id if seen else 0, 7)
            seen.extend(page)
            if ended and not page:
                return

    def write(writer: int) -> None:
        draw = random.Random(writer)
        for number in range(each):
            with database.transaction() as tx:
                record(tx, "source.forgotten", None, writer=writer, number=number)
                tx._cursor.execute("SELECT pg_sleep(%s)", (draw.random() * 0.008,))

    with ThreadPoolExecutor(writers + 1) as threads:
        reader = threads.submit(read)
        for done in [threads.submit(write, writer) for writer in range(writers)]:
            done.result()
        over.set()
        reader.result()
    told = [(event.payload["writer"], event.payload["number"]) for event in seen]
    assert sorted(told) == list(itertools.product(range(writers), range(each)))
    assert [event.event_id for event in seen] == sorted(event.event_id for event in seen)
    assert [event.at for event in seen] == sorted(event.at for event in seen)


def test_who_listens_is_told_the_id(target: Target, database: Database) -> None:
    listener = db.connect(target)
    listener.autocommit = True
    with listener.cursor() as cursor:
        cursor.execute("LISTEN ratchet_events")
        with database.transaction() as tx:
            record(tx, "source.forgotten", None, target="x")
        cursor.execute("SELECT 1")
    assert [notice.payload for notice in listener.notifies] == [str(events(database)[0].event_id)]
    listener.close()


# who may


def test_the_trainer_records_and_the_metrics_service_reads(role_target: Callable[[str], Target]) -> None:
    trainer = Database(role_target("ratchet_trainer"))
    with trainer.transaction() as tx:
        record(tx, "source.forgotten", None, target="x")
    metrics = Database(role_target("ratchet_metrics"))
    assert [event.payload["target"] for event in events(metrics)] == ["x"]
    trainer.close()
    metrics.close()


@pytest.mark.parametrize("role", ["ratchet_processor", "ratchet_metrics"])
def test_others_record_nothing(role_target: Callable[[str], Target], role: str) -> None:
    pool = Database(role_target(role))
    for statement in (
        "SELECT record_event('source.forgotten', NULL, '{}')",
        "INSERT INTO events (kind, payload) VALUES ('round.promoted', '{}')",
        "INSERT INTO event_drafts (kind, payload) VALUES ('a.b', '{}')",
        "UPDATE deliveries SET state = 'due'",
        "UPDATE webhook_endpoints SET disabled_at = NULL",
        "SELECT event_goes_out()",
    ):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege), pool.transaction() as tx:
            tx._cursor.execute(statement)
    pool.close()


def test_a_round_of_the_trainers_role_makes_its_events(
    role_target: Callable[[str], Target], store: Callable[[list[str]], None], tmp_path: Path
) -> None:
    """It may not write events itself: the triggers do."""
    store(texts(30))
    pool = Database(role_target("ratchet_trainer"))
    Life(pool, tmp_path).round()
    assert [event.kind for event in events(pool)] == ["round.started", "round.promoted"]
    pool.close()
