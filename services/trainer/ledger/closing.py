"""How a round ends; inside the transaction that holds the lease."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.core.db import Transaction, as_json
from services.core.models import Json, RoundState, Subject
from services.trainer.ledger import adapters
from services.trainer.ledger.values import Closing, Lease, Round
from services.trainer.promotions import rows
from services.trainer.promotions.line import Move

Losses = Mapping[Subject, Sequence[Any]]  # of each content (evaluate.ContentLoss)


def close(
    tx: Transaction,
    lease: Lease,
    round_: Round,
    *,
    state: RoundState,
    training: Json | None,
    verdict: Json,
    losses: Losses,
    manifest: Json | None,
) -> Closing:
    """Its evaluations, its verdict and, when promoted, adapter and promotion: `Ledger.close`."""
    pin = None if manifest is None else rows.read(tx, lease.track).pin
    if pin is not None:
        state = RoundState.REFUSED
        verdict = {**verdict, "promoted": False, "reason": _pinned(round_, verdict["reason"], pin)}
    if _close(tx, round_.round_id, state, training, verdict) is None:
        # the commit that seemed lost had gone through, or the champion was moved
        row = tx.one("round_outcome", round_id=round_.round_id)
        return Closing(RoundState(row.state), row.reason)
    _record_losses(tx, round_.round_id, losses)
    if manifest is not None:
        adapter_id = adapters.register(tx, lease.track, round_, manifest)
        if pin is None:
            adapters.promote(tx, lease, adapter_id, verdict["reason"])
    return Closing(state, verdict["reason"])


def fail(tx: Transaction, track: str, reason: str) -> None:
    """The open round, where there is one."""
    row = tx.one("open_round", track=track)
    if row is not None:
        _close(tx, row.id, RoundState.FAILED, None, {"promoted": False, "reason": reason})


def _close(tx: Transaction, round_id: int, state: RoundState, training: Json | None, verdict: Json) -> Any:
    """None when it was closed before."""
    return tx.value(
        "close_round",
        round_id=round_id,
        state=state,
        training=None if training is None else as_json(training),
        verdict=as_json(verdict),
    )


def _record_losses(tx: Transaction, round_id: int, losses: Losses) -> None:
    for subject, items in losses.items():
        for item in items:
            tx.execute(
                "record_evaluation",
                round_id=round_id,
                subject=subject,
                content_id=item.content_id,
                nats=item.nats,
                tokens=item.tokens,
                bytes=item.bytes,
                correct=item.correct,
            )


def _pinned(round_: Round, reason: str, pin: Move) -> str:
    """Why a candidate that passed the gate is not the champion."""
    return (
        f"{reason}; but the champion is pinned by {pin.actor} ({pin.reason}):"
        f" `ratchet promote {round_.name}` makes this one the champion"
    )
