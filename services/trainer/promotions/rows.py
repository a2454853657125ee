"""The rows behind a track's line of champions, read and written inside a transaction."""

from services.core.db import Transaction
from services.core.errors import ConfigurationError, LeaseLostError
from services.trainer.promotions.line import By, Kind, Line, Move, Published


def read(tx: Transaction, track: str) -> Line:
    """The track's moves as they stand in this transaction."""
    adapters = (Published(*row) for row in tx.all("published_adapters", track=track))
    moves = (
        Move(Kind(row.kind), row.adapter_id, row.actor, row.reason) for row in tx.all("moves", track=track)
    )
    return Line(tuple(adapters), tuple(moves))


def record(tx: Transaction, track: str, kind: Kind, adapter_id: int | None, by: By) -> None:
    tx.execute(
        "record_move",
        track=track,
        kind=kind,
        adapter_id=adapter_id,
        token=by.token,
        actor=by.actor,
        reason=by.reason,
    )


def hold(tx: Transaction, track: str, token: int | None = None) -> None:
    """The track's row, locked until the transaction ends.

    token: of the lease under which this happens. Raises LeaseLostError when there is a newer one,
    ConfigurationError when there is no such track.
    """
    if token is not None:
        if tx.value("hold_token", track=track, token=token) is None:
            raise LeaseLostError(
                f"another trainer has taken the track {track}: token {token} commits nothing"
            )
    elif tx.value("hold_track", track=track) is None:
        known = ", ".join(row.name for row in tx.all("track_names")) or "none yet"
        raise ConfigurationError(f"there is no track {track}; tracks: {known}")
