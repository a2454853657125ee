"""Adapters in the ledger: read, entered, promoted; inside a transaction."""

from services.core.db import Transaction, as_json
from services.core.models import Json
from services.trainer.ledger.values import Adapter, Lease, Round
from services.trainer.promotions import rows
from services.trainer.promotions.line import By, Kind


def champion(tx: Transaction, track: str) -> Adapter | None:
    row = tx.one("champion", track=track)
    return None if row is None else Adapter(row.id, row.directory, row.manifest, row.canary)


def adapter(tx: Transaction, adapter_id: int | None) -> Adapter | None:
    if adapter_id is None:
        return None
    row = tx.one("adapter", adapter_id=adapter_id)
    return Adapter(row.id, row.directory, row.manifest)


def register(tx: Transaction, track: str, round_: Round, manifest: Json) -> int:
    """Enter what was published; its id."""
    entered = tx.value(
        "insert_adapter",
        track=track,
        round_id=round_.round_id,
        directory=round_.name,
        manifest=as_json(manifest),
    )
    return int(entered)


def promote(tx: Transaction, lease: Lease, adapter_id: int, reason: str) -> None:
    """By the gate."""
    rows.record(tx, lease.track, Kind.PROMOTED, adapter_id, By("gate", reason, lease.token))
    tx.execute("settle_trained", track=lease.track)
