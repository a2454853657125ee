"""`ratchet train --now|pause|resume`: ask the trainer of a track, and wait for what it answers.

The way is the table `requests` (sql/migrations/0015_requests.sql), which the dashboard's buttons use too.
"""

import json
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from services.cli.asking import connection, tracks
from services.cli.asking.person import user
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.cli.printing.progress import newest, training
from services.cli.printing.screen import Screen, Terminal
from services.core.db import Database, Transaction, as_json
from services.core.models import Json, RequestState, Service

POLL = 0.4  # seconds
UNHEARD = 10.0  # seconds a trainer may be silent before nobody is waited for
Clock = Callable[[], float]


@dataclass(frozen=True)
class Asked:
    """What is asked of which track; None: the recipe's."""

    kind: str
    track: str | None = None
    reason: str | None = None
    wait: bool = True


@dataclass(frozen=True)
class Look:
    """A request as it stands, and its trainer's last heartbeat if there is a fresh one."""

    state: str
    message: str | None = None
    beat: Json | None = None

    @property
    def is_answered(self) -> bool:
        return self.state != RequestState.WAITING


def run(environment: Environment, asked: Asked, *, as_json: bool) -> bool:
    """Ask, wait, print the answer; whether the trainer did it, or when not waiting, was asked.

    Raises ConfigurationError for a track that no trainer has ever had.
    """
    with connection.opened(environment, f"ratchet {asked.kind}") as database:
        with database.transaction() as tx:
            track = tracks.one(environment, tx, asked.track)
            request = ask(tx, asked, track)
        seen = _awaited(database, request, track, as_json) if asked.wait else Look(RequestState.WAITING)
    told = {
        "request": request,
        "kind": asked.kind,
        "track": track,
        "state": seen.state,
        "message": seen.message,
    }
    print(json.dumps(told) if as_json else _said(told, asked.wait))
    return seen.state == RequestState.DONE or not asked.wait


def ask(tx: Transaction, asked: Asked, track: str) -> int:
    """The number of the new request."""
    payload = {} if asked.reason is None else {"reason": asked.reason}
    return int(
        tx.value(
            "ask", kind=asked.kind, track=track, payload=as_json(payload), actor=user(), key=str(uuid.uuid4())
        )
    )


def _awaited(database: Database, request: int, track: str, as_json: bool) -> Look:
    """How it stands in the end; Ctrl-C leaves it to the trainer."""
    screen = Screen(Terminal(sys.stderr if as_json else sys.stdout))
    try:
        return wait(database, request, track, screen)
    except KeyboardInterrupt:
        screen.say(f"request {request} still waits: `ratchet events` will have its answer")
        raise
    finally:
        screen.close()


def wait(database: Database, request: int, track: str, screen: Screen, clock: Clock = time.monotonic) -> Look:
    """How it stands once it is answered, or once its trainer has not been heard of for a while."""
    heard = clock()
    while True:
        seen = look(database, request, track)
        if seen.beat is not None:
            heard = clock()
        if seen.is_answered or clock() - heard > UNHEARD:
            return seen
        screen.show([(f"request {request}", progress(track, seen.beat))])
        time.sleep(POLL)


def look(database: Database, request: int, track: str) -> Look:
    with database.transaction() as tx:
        row = tx.one("request", request=request)
        beats: list[Any] = [beat._asdict() for beat in tx.all("metrics_beats")]
    own = [beat for beat in beats if beat["detail"].get("track") == track]
    return Look(row.state, row.message, newest(own, Service.TRAINER))


def progress(track: str, beat: Json | None) -> str:
    """Whom one waits for, and what it is doing."""
    if beat is None:
        return f"looking for a trainer of {inert(track)} …"
    return f"waiting for the trainer: {inert(training(beat))}"


def _said(told: Json, waited: bool) -> str:
    track, request = inert(told["track"]), told["request"]
    if told["state"] != RequestState.WAITING:
        return f"{track}: {inert(told['message'])}"
    if not waited:
        return f"asked the trainer of {track} (request {request}): `ratchet events` will have its answer"
    return (
        f"no trainer of {track} is heard of: request {request} waits an hour for one;"
        " `ratchet up` starts it, `ratchet status` says what runs"
    )
