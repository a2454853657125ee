"""Rows as processor and trainer leave them, for whatever looks at them."""

import hashlib
import math
from typing import Any

from services.core.db import Database, Transaction, as_json
from services.core.models import Service, ServiceState

LANGUAGES = ("python", "python", "python", "rust", "go", "typescript")
REASONS = ("too_short", "generated", "too_long_line", "duplicate", "not_text")
RECIPE = {
    "name": "demo",
    "base_model": "SmolLM2-135M-Instruct",
    "method": "lora",
    "batch_size": 4,
    "gradient_accumulation_steps": 4,
    "max_length": 512,
    "learning_rate": 2e-4,
    "lora_r": 16,
}


def fill(database: Database, contents: int = 300, running: bool = True) -> None:
    """A track with a promoted and a refused round, and one under way if `running`."""
    with database.transaction() as transaction:
        ids = _ingest(transaction, contents)
        _write(
            transaction,
            "INSERT INTO tracks (name, recipe, token, lease_holder, lease_expires_at)"
            " VALUES ('demo', %s, 3, 'host:42', now() + interval '30 seconds')",
            as_json(RECIPE),
        )
        _closed_round(transaction, 1, ids[: contents // 2], promoted=True)
        _closed_round(transaction, 2, ids[contents // 2 : contents * 3 // 4], promoted=False)
        if running:
            _open_round(transaction, 3, ids[contents * 3 // 4 : contents * 4 // 5])
    beat(database, Service.PROCESSOR, ServiceState.SCANNING, {"source": "werkzeug", "files_seen": 412})
    training = {
        "track": "demo",
        "round": 3,
        "attempt": 1,
        "step": 84,
        "total_steps": 240,
        "loss": 1.3172,
        "tokens_per_s": 845.5,
        "eta_s": 512.0,
        "message": None,
        "new_contents": 40,
        "needed": 200,
    }
    idle = {"track": "demo", "round": None, "new_contents": 40, "needed": 200}
    state = ServiceState.TRAINING if running else ServiceState.IDLE
    beat(database, Service.TRAINER, state, training if running else idle)


def beat(
    database: Database,
    service: str,
    state: str,
    detail: dict[str, Any] | None = None,
    *,
    instance: str = "host:42",
    age_seconds: float = 0.0,
) -> None:
    """A heartbeat, `age_seconds` old."""
    with database.transaction() as transaction:
        transaction.execute(
            "beat", service=service, instance=instance, state=state, detail=as_json(detail or {})
        )
        _write(
            transaction,
            "UPDATE heartbeats SET beat_at = now() - make_interval(secs => %s)"
            " WHERE service = %s AND instance = %s",
            age_seconds,
            service,
            instance,
        )


def _write(transaction: Transaction, statement: str, *values: Any) -> Any:
    """Tests may say SQL directly: the services' named queries are theirs alone."""
    cursor = transaction._cursor
    cursor.execute(statement, values)
    return cursor.fetchone()[0] if cursor.description else None


def _ingest(transaction: Transaction, contents: int) -> list[int]:
    source = _write(
        transaction, "INSERT INTO sources (name, last_scanned_at) VALUES ('werkzeug', now()) RETURNING id"
    )
    ids = []
    for number in range(contents):
        digest = hashlib.sha256(str(number).encode()).digest()
        score = min(100, max(0, round(68 + 22 * math.sin(number) + number % 13)))
        ids.append(
            _write(
                transaction,
                "INSERT INTO contents (sha256, cluster_id, language, text, bytes, lines, characters, live,"
                " score, score_reasons, scorer_version)"
                " VALUES (%s, %s, %s, %s, %s, 40, 11, true, %s, '{}', 1) RETURNING id",
                digest,
                number + 1,
                LANGUAGES[number % len(LANGUAGES)],
                "secret text",
                1000 + number,
                score,
            )
        )
        _file(transaction, source, f"src/{number}.py", ids[-1], None)
    for number in range(contents // 4):
        _file(transaction, source, f"no/{number}", None, REASONS[min(number % 7, 4)])
    return ids


def _file(transaction: Transaction, source: int, path: str, content: int | None, reason: str | None) -> None:
    _write(
        transaction,
        "INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id, reason)"
        " VALUES (%s, %s, 1, 1, %s, %s)",
        source,
        path,
        content,
        reason,
    )


def _open_round(transaction: Transaction, number: int, ids: list[int]) -> int:
    round_id = int(
        _write(
            transaction,
            "INSERT INTO rounds (track, number, recipe, snapshot_hash, attempts, opened_at)"
            " VALUES ('demo', %s, %s, 'hash', 1, now() - interval '9 minutes') RETURNING id",
            number,
            as_json(RECIPE),
        )
    )
    for position, content in enumerate(ids):
        role = "held_out" if position % 20 == 0 else "train"
        _write(
            transaction,
            "INSERT INTO round_contents VALUES (%s, %s, %s, %s)",
            round_id,
            content,
            role,
            position,
        )
    for step in range(1, 85):
        loss = 1.05 + 0.9 * math.exp(-step / 30) + 0.06 * math.sin(step * 1.7)
        _progress(transaction, round_id, step, "train", {"loss": round(loss, 4), "learning_rate": 2e-4})
    for step in range(0, 85, 12):
        bits = 0.71 + 0.11 * math.exp(-step / 35)
        _progress(
            transaction, round_id, step, "eval", {"bits_per_byte": round(bits, 5), "eval_loss": bits * 2}
        )
    return round_id


def _progress(
    transaction: Transaction, round_id: int, step: int, kind: str, metrics: dict[str, float]
) -> None:
    statement = "INSERT INTO progress (round_id, step, kind, metrics) VALUES (%s, %s, %s, %s)"
    _write(transaction, statement, round_id, step, kind, as_json(metrics))


def _closed_round(transaction: Transaction, number: int, ids: list[int], *, promoted: bool) -> None:
    round_id = _open_round(transaction, number, ids)
    training = {
        "train_loss": 1.21,
        "eval_loss": 1.34,
        "bits_per_byte": 0.7312,
        "steps": 240,
        "total_steps": 240,
        "best_step": 216,
        "samples": 1920,
        "tokens": 655360,
        "seconds": 412.5,
        "tokens_per_s": 1588.7,
        "stopped_early": False,
    }
    champion = None if number == 1 else 0.7312
    verdict = {
        "promoted": promoted,
        "against": "base" if number == 1 else "champion",
        "reason": "7.4 % fewer bits than the base model on 61 held-out files, at least 5.9 %"
        if promoted
        else "0.2 % fewer bits than the champion, but the interval reaches from -0.4 % to 0.8 %",
        "bits_per_byte": {"base": 0.7897, "champion": champion, "candidate": 0.7312 if promoted else 0.7298},
        "improvement": 0.0741 if promoted else 0.0019,
        "low": 0.059,
        "high": 0.089,
        "held_out_files": 61,
        "held_out_bytes": 402_311,
    }
    _write(
        transaction,
        "UPDATE rounds SET state = %s, training = %s, verdict = %s,"
        " closed_at = now() - interval '1 minute' WHERE id = %s",
        "promoted" if promoted else "refused",
        as_json(training),
        as_json(verdict),
        round_id,
    )
    if promoted:
        adapter = _write(
            transaction,
            "INSERT INTO adapters (track, round_id, directory, manifest)"
            " VALUES ('demo', %s, 'round-0001', '{}') RETURNING id",
            round_id,
        )
        _write(
            transaction,
            "INSERT INTO promotions (track, adapter_id, token, reason) VALUES ('demo', %s, 3, 'better')",
            adapter,
        )
        _write(
            transaction,
            "INSERT INTO trained SELECT 'demo', content_id, round_id FROM round_contents"
            " WHERE round_id = %s AND role = 'train'",
            round_id,
        )
