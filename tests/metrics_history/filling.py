"""Fill a migrated database: what came in, what was trained, what was forgotten, what was told of it."""

from datetime import UTC, datetime, timedelta

from services.core.db import Database, Transaction, as_json
from services.core.models import Json, Service, ServiceState
from services.trainer.forgetting import found, steps
from services.trainer.forgetting.target import find
from services.trainer.forgetting.words import Policy
from tests.metrics_history import figures, ingest, shown
from tests.metrics_history.practice import Practice
from tests.metrics_history.training import RUNNING_STEP, TRACK, Track

FORGOTTEN = "src/mail/customers.py"
OF_ROUNDS = {"rounds": ("round_started", "round_closed"), "promotions": ("moved",)}  # they say it is now
HOOK = "hooks.example.com-5f0c93d1"


def fill(database: Database, moment: datetime | None = None) -> None:
    """Write the history that ends at `moment`, now unless said otherwise, as the database's owner."""
    moment = moment or datetime.now(UTC)
    with database.transaction() as transaction:
        for table, triggers in OF_ROUNDS.items():
            for trigger in triggers:
                transaction._cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
        ingest.fill(transaction, moment)
        Track(transaction, moment).fill()
        shown.fill(transaction)
        Practice(transaction, moment).fill()
        _tell(transaction, moment)
        for table, triggers in OF_ROUNDS.items():
            for trigger in triggers:
                transaction._cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}")
    _forget(database)
    with database.transaction() as transaction:
        shown.answers(transaction)
    beat(database, moment)


def _tell(transaction: Transaction, moment: datetime) -> None:
    """Events in the order of their times, as sql/migrations/0012_events.sql tells of what was before it."""
    cursor = transaction._cursor
    cursor.execute(
        "INSERT INTO webhook_endpoints (name, kinds, seen_at) VALUES (%s, %s, %s)",
        (HOOK, ["round.promoted", "round.failed", "service.stalled"], moment),
    )
    stalled = {"service": "trainer", "instance": "trainer-0:4093", "state": "recovering", "silent_s": 4}
    crash = {**stalled, "message": "CUDA out of memory. Tried to allocate 1.53 GiB"}
    cursor.execute(
        "INSERT INTO events (kind, track, round_number, adapter, payload, at)"
        " SELECT kind, track, round_number, adapter, payload, at FROM ("
        "  SELECT opened_at AS at, 'round.started' AS kind, track, number AS round_number, NULL AS adapter,"
        "         round_started(r) AS payload FROM rounds r"
        "  UNION ALL SELECT closed_at, 'round.' || state, track, number, NULL, round_closed(r)"
        "  FROM rounds r WHERE state IN ('refused', 'failed')"
        "  UNION ALL SELECT at, kind, track, round_number, adapter, payload FROM moves_as_events"
        "  UNION ALL SELECT %s, 'service.stalled', 'demo', NULL, NULL, %s::jsonb"
        "  UNION ALL SELECT %s, 'service.recovered', 'demo', NULL, NULL, %s::jsonb) AS past"
        " ORDER BY at, kind",
        (moment - timedelta(hours=23, minutes=45), as_json(crash),
         moment - timedelta(hours=23, minutes=44), as_json({**stalled, "state": "training"})),
    )  # fmt: skip
    cursor.execute(
        "UPDATE deliveries SET state = 'delivered', attempts = 1, status = 204, ended_at = now()"
        " WHERE event_id NOT IN (SELECT id FROM events WHERE kind = 'round.failed')"
    )
    cursor.execute(
        "UPDATE deliveries SET state = 'given_up', attempts = 8, status = 500, error = 'HTTP 500',"
        " ended_at = now()"
        " WHERE state = 'due'"
    )


def _forget(database: Database) -> None:
    """What `ratchet forget --policy warn` does with a file: adapters that learned from it are marked."""

    def work(transaction: Transaction) -> int:
        target = find(transaction, f"{ingest.SOURCES[0].name}/{FORGOTTEN}")
        looked = found.read(transaction, target, Policy.WARN, everywhere=True)
        forgetting_id = steps.bar(transaction, looked, "mira", "names of customers", {})
        transaction.execute(
            "forget_mark",
            forgetting=forgetting_id,
            adapter_ids=[adapter.adapter_id for adapter in looked.adapters],
            contents=[adapter.contents for adapter in looked.adapters],
        )
        return forgetting_id

    forgetting_id = database.run(work)
    forgetting = database.run(lambda transaction: steps.read(transaction, forgetting_id))
    steps.erase(database, forgetting)
    steps.finish(database, forgetting)


def beat(database: Database, moment: datetime) -> None:
    """Both services say what they do; again, whenever they are to be alive."""
    processor = {
        "source": ingest.SOURCES[0].name, "files_seen": 412, "stored": 318, "rejected": 94,
        "files_per_s": 38.4, "message": None,
    }  # fmt: skip
    points = [metrics for kind, _, metrics in figures.curve(6, RUNNING_STEP) if kind == "train"]
    trainer = {
        "track": TRACK, "round": 6, "attempt": 1, "step": RUNNING_STEP, "total_steps": figures.STEPS,
        "eta_s": 1248.0, "mfu": None, "message": None, "new_contents": 31, "needed": 24,
        **{name: points[-1][name] for name in
           ("loss", "tokens_per_s", "learning_rate", "grad_norm", "memory_bytes", "input_stall")},
    }  # fmt: skip
    _beat(database, moment, Service.PROCESSOR, "processor-0:3907", ServiceState.SCANNING, processor)
    _beat(database, moment, Service.TRAINER, "trainer-0:4711", ServiceState.TRAINING, trainer)


def _beat(
    database: Database, moment: datetime, service: Service, instance: str, state: ServiceState, detail: Json
) -> None:
    with database.transaction() as transaction:
        transaction.execute("beat", service=service, instance=instance, state=state, detail=as_json(detail))
        transaction._cursor.execute(
            "UPDATE heartbeats SET beat_at = %s, started_at = %s WHERE instance = %s",
            (moment, moment - timedelta(days=2), instance),
        )
