"""Ask a track's trainer for something, and read what came of it: sql/migrations/0015_requests.sql."""

import time
from dataclasses import dataclass, field
from typing import Any

from werkzeug.exceptions import Conflict, NotFound

from services.core.db import Transaction, as_json
from services.core.models import Json, RequestKind, RequestState
from services.metrics.api.reader import Reader

LOOK = 0.1  # seconds between two looks for an answer


@dataclass(frozen=True)
class Wish:
    """What is asked for; of the payload only what was said."""

    kind: RequestKind
    track: str
    actor: str
    key: str | None = None
    adapter: str | None = None
    target: str | None = None
    reason: str | None = None

    @property
    def payload(self) -> Json:
        said = {"adapter": self.adapter, "target": self.target, "reason": self.reason}
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True)
class Asked:
    """A request as it stands."""

    id: int
    kind: RequestKind
    track: str
    actor: str
    state: RequestState
    message: str | None
    asked_at: Any
    done_at: Any
    expires_at: Any
    payload: Json = field(default_factory=dict)

    @classmethod
    def of(cls, row: Any) -> "Asked":
        return cls(**row._asdict())

    @property
    def adapter(self) -> Any:
        return self.payload.get("adapter")

    @property
    def target(self) -> Any:
        return self.payload.get("target")

    @property
    def reason(self) -> Any:
        return self.payload.get("reason")


def ask(reader: Reader, wish: Wish) -> Asked:
    """Put the request down; its trainer looks every half second.

    Answers 404 for a track that is not there, 409 for a key that stands for another request.
    """

    def work(tx: Transaction) -> Asked:
        tracks = tx.one("has_track", track=wish.track)
        if not tracks.is_there:
            known = ", ".join(tracks.names) or "none yet"
            raise NotFound(f"there is no track {wish.track!r}; tracks: {known}")
        number = tx.value(
            "ask",
            kind=wish.kind,
            track=wish.track,
            payload=as_json(wish.payload),
            actor=wish.actor,
            key=wish.key,
        )
        if number is None:
            raise Conflict(f"the key {wish.key!r} stands for another request")
        return Asked.of(tx.one("request", request=number))

    return reader.write(work)


def find(reader: Reader, number: int) -> Asked | None:
    rows = reader.all("request", request=number)
    return Asked.of(rows[0]) if rows else None


def answered(reader: Reader, asked: Asked, seconds: float) -> Asked:
    """The request when it has its answer, or as it stands after so many seconds."""
    end = time.monotonic() + seconds
    while asked.state == RequestState.WAITING and time.monotonic() < end:
        time.sleep(LOOK)
        asked = find(reader, asked.id) or asked
    return asked
