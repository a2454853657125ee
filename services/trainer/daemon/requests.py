"""What people asked of the track from outside, carried out and answered: sql/migrations/0015_requests.sql.

Each is answered once, whatever is killed when: a move of the champion and its answer are one transaction, and
the rest can be carried out twice without harm.
"""

import datetime
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from services.core.db import Database, Transaction
from services.core.errors import DatabaseUnavailableError, ForgetError, PromotionError, RatchetError
from services.core.models import Json, RequestKind, RequestState
from services.core.process import failpoint
from services.core.settings import Settings
from services.trainer.forgetting import asked as forgetting
from services.trainer.promotions.champions import Champions, Moved
from services.trainer.promotions.line import By, Kind

log = logging.getLogger(__name__)
BASE = "the base model"


@dataclass(frozen=True)
class Request:
    request_id: int
    kind: RequestKind
    payload: Json
    actor: str

    @property
    def adapter(self) -> str | None:
        return _text(self.payload.get("adapter"))

    @property
    def target(self) -> str | None:
        """What is to be forgotten: a source, a folder or a file of it."""
        return _text(self.payload.get("target"))

    @property
    def reason(self) -> str:
        return _text(self.payload.get("reason")) or f"request {self.request_id}"


@dataclass(frozen=True)
class Pause:
    """No new round begins while it lasts."""

    since: datetime.datetime
    actor: str
    reason: str | None

    @property
    def words(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"paused by {self.actor} since {self.since:%Y-%m-%d %H:%M} UTC{why}"


class Desk:
    """One track's requests. Methods raise DatabaseUnavailableError; the request then still waits."""

    def __init__(self, settings: Settings, database: Database, track: str) -> None:
        self._settings = settings
        self._database = database
        self._track = track
        self._long_work: threading.Thread | None = None

    def waiting(self) -> list[Request]:
        """What waits, the oldest first; what has waited too long is refused."""
        with self._database.transaction() as tx:
            rows = tx.all("waiting_requests", track=self._track)
            if any(row.expired for row in rows):
                tx.execute("expire_requests")
        return [
            Request(row.id, RequestKind(row.kind), row.payload, row.actor) for row in rows if not row.expired
        ]

    def pause(self) -> Pause | None:
        with self._database.transaction() as tx:
            row = tx.one("pause_of_track", track=self._track)
        return None if row is None else Pause(*row)

    def done(self, request: Request, message: str) -> None:
        self._answer(request, RequestState.DONE, message)

    def failed(self, request: Request, message: str) -> None:
        self._answer(request, RequestState.FAILED, message)

    def carry_out(self, request: Request) -> bool:
        """All but `train`, which is the daemon's own. What cannot be done is answered with the reason.

        Whether it has its answer: what takes long goes on, and is answered when it is over.
        """
        if request.kind is not RequestKind.FORGET:
            self._try(request)
            return True
        if self._long_work is None or not self._long_work.is_alive():
            self._long_work = threading.Thread(target=self._try_apart, args=(request,), daemon=True)
            self._long_work.start()
        return False

    def _try_apart(self, request: Request) -> None:
        try:
            self._try(request)
        except DatabaseUnavailableError as exc:
            log.warning("request %d waits: %s", request.request_id, exc)

    def _try(self, request: Request) -> None:
        try:
            self._work(request)(request)
        except DatabaseUnavailableError:
            raise
        except RatchetError as exc:
            self.failed(request, str(exc))
        except Exception as exc:  # it would be tried again for ever
            log.exception("request %d, %s, could not be carried out", request.request_id, request.kind)
            self.failed(
                request, f"it could not be carried out ({type(exc).__name__}); the trainer's log says why"
            )

    def _work(self, request: Request) -> Callable[[Request], None]:
        match request.kind:
            case RequestKind.PAUSE:
                return self._pause
            case RequestKind.RESUME:
                return self._resume
            case RequestKind.FORGET:
                return self._forget
            case _:
                return self._move

    def _pause(self, request: Request) -> None:
        with self._database.transaction() as tx:
            reason = _text(request.payload.get("reason"))
            paused = tx.value("pause_track", track=self._track, actor=request.actor, reason=reason)
            said = "no new round begins until it is resumed; one that runs goes on"
            if paused is None:
                said = Pause(*tx.one("pause_of_track", track=self._track)).words + " already"
            self._answered(tx, request, RequestState.DONE, said)

    def _resume(self, request: Request) -> None:
        with self._database.transaction() as tx:
            resumed = tx.value("resume_track", track=self._track)
            said = "it was not paused" if resumed is None else "new rounds may begin"
            self._answered(tx, request, RequestState.DONE, said)

    def _move(self, request: Request) -> None:
        """Move the champion and answer, both or neither; then let `trained` follow."""

        def answer(tx: Transaction, moved: Moved) -> None:
            self._answered(tx, request, RequestState.DONE, outcome(request, moved))
            failpoint("request.before_commit")

        folder = self._settings.adapters_dir / self._track
        champions = Champions(self._database, self._track, folder, answer)
        by = By(request.actor, request.reason)
        match request.kind:
            case RequestKind.PROMOTE:
                moved = champions.promote(_needed(request), by)
            case RequestKind.REJECT:
                moved = champions.reject(_needed(request), by)
            case RequestKind.ROLLBACK:
                moved = champions.roll_back(by, request.adapter)
            case RequestKind.PIN:
                moved = champions.pin(by, request.adapter)
            case _:
                moved = champions.unpin(by)
        failpoint("request.after_commit")
        log.info("request %d of %s: %s", request.request_id, request.actor, outcome(request, moved))
        if moved.before != moved.champion:
            champions.settle_trained()

    def _forget(self, request: Request) -> None:
        if request.target is None:
            raise ForgetError("what is to be forgotten was not said: `target` names a source, folder or file")
        said = forgetting.carry_out(
            self._database, self._settings, request.target, request.actor, request.reason
        )
        self.done(request, said)

    def _answer(self, request: Request, state: RequestState, message: str) -> None:
        with self._database.transaction() as tx:
            if tx.value("answer_request", request=request.request_id, state=state, message=message) is None:
                log.warning("request %d has its answer already", request.request_id)
        log.info("request %d of %s, %s: %s", request.request_id, request.actor, request.kind, message)

    def _answered(self, tx: Transaction, request: Request, state: RequestState, message: str) -> None:
        """Within what it answers: that does not happen if another has answered."""
        if tx.value("answer_request", request=request.request_id, state=state, message=message) is None:
            raise PromotionError(f"request {request.request_id} has its answer already")


def outcome(request: Request, moved: Moved) -> str:
    """What a move came to, in a sentence or two."""
    champion = moved.champion or BASE
    said = {
        Kind.PROMOTED: f"{champion} is the champion now",
        Kind.ROLLED_BACK: f"{champion} is the champion again",
        Kind.REJECTED: f"{request.adapter} can never be the champion again",
        Kind.PINNED: f"{champion} stays the champion whatever rounds bring",
        Kind.UNPINNED: f"{champion} stays the champion until a round is better",
    }
    told = [said[kind] for kind in moved.kinds]
    if moved.closed_round is not None:
        told.append(
            f"round {moved.closed_round} was under way and is closed: it continued from another champion"
        )
    return "; ".join(told)


def _needed(request: Request) -> str:
    if request.adapter is None:
        raise PromotionError(f"{request.kind} needs the name of an adapter: `adapter`, such as round-0003")
    return request.adapter


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
