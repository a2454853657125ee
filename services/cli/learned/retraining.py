"""Wait until a champion that was left for what it had learned has a successor that has not."""

import time
from collections.abc import Callable, Sequence

from services.cli.printing.inert import inert
from services.core.db import Database
from services.core.models import HEARTBEAT_STALE

LOOK = 1.0  # seconds between two looks
PATIENCE = 60.0  # seconds without a trainer of the track after which nobody will retrain it


def await_rounds(
    database: Database, tracks: Sequence[str], say: Callable[[str], None]
) -> dict[str, str | None]:
    """Show what the trainers do until each track has closed a round that began since; by track, how it ended.

    None: no trainer of the track runs, or it waits for more code than is left.
    """
    return {track: _await(database, track, say) for track in tracks}


def _await(database: Database, track: str, say: Callable[[str], None]) -> str | None:
    said = ""
    alone_since: float | None = None
    while True:
        with database.transaction() as tx:
            rounds = tx.all("rounds_since", track=track)
            beat = tx.one("trainer_beat", track=track)
            due = bool(tx.value("retrains", track=track))
        if rounds and rounds[-1].state != "open":
            last = rounds[-1]
            say(f"{track}: round {last.number} was {last.state}: {inert(last.reason or 'no reason given')}")
            return str(last.state)
        lives = beat is not None and beat.age < HEARTBEAT_STALE
        now = time.monotonic()
        alone_since = None if lives else alone_since or now
        if alone_since is not None and now - alone_since > PATIENCE:
            say(f"{track}: no trainer runs; start it (`ratchet up`) and it trains on what is left")
            return None
        if lives and due and not beat.detail.get("new_contents"):
            line = f"{track}: nothing is left to train on until more code comes in"
        else:
            line = f"{track}: {_words(beat.detail) if lives else 'waiting for a trainer'}"
        if line != said:
            say(inert(line))
            said = line
        time.sleep(LOOK)


def _words(detail: dict[str, object]) -> str:
    """What a trainer's heartbeat says, in a line."""
    if detail.get("round") is None:
        return str(detail.get("message") or "waiting")
    step = "" if detail.get("step") is None else f", step {detail['step']}/{detail['total_steps']}"
    message = f": {detail['message']}" if detail.get("message") else ""
    return f"round {detail['round']}{step}{message}"
