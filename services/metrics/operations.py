"""What an operator watches beside ingest and training: database, events, webhooks, what was forgotten."""

from typing import Any

from services.core.db import Transaction
from services.core.models import Json


def read(transaction: Transaction, quality_threshold: int) -> Json:
    """The part `operations` of the snapshot: figures by track, kind and endpoint, none by file or round."""
    forgotten = transaction.one("operations_forgotten")
    database = transaction.one("operations_database")
    return {
        "database": database._asdict(),
        "files_waiting": transaction.value("operations_waiting"),
        "newest_content_at": transaction.value("operations_newest_content"),
        "backlog": _rows(transaction, "operations_backlog", quality_threshold=quality_threshold),
        "tracks": _rows(transaction, "operations_tracks"),
        "practice": _rows(transaction, "operations_practice"),
        "moves": _rows(transaction, "operations_moves"),
        "events": _rows(transaction, "operations_events"),
        "deliveries": _rows(transaction, "operations_deliveries"),
        "requests": _rows(transaction, "operations_requests"),
        "forgotten": forgotten._asdict(),
        "stalls": _rows(transaction, "operations_stalls"),
    }


def _rows(transaction: Transaction, query: str, **parameters: Any) -> list[Json]:
    return [row._asdict() for row in transaction.all(query, **parameters)]
