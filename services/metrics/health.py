"""Is every part well? One pure function of what was last read; no clock, no database."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from services.core.models import HEARTBEAT_INTERVAL, HEARTBEAT_STALE, Json, Service, ServiceState

GRACE = 60.0  # seconds after the start of this process in which a part may still be missing
SUCCESSION = 2 * HEARTBEAT_INTERVAL  # seconds behind the newest beat: a predecessor, it speaks no more
ILL_STATES = frozenset(state.value for state in ServiceState if state.is_ill)


class Status(StrEnum):
    OK = "ok"
    STARTING = "starting"  # not seen yet, and it is early
    UNKNOWN = "unknown"  # nothing can be known while the database is ill
    ILL = "ill"


@dataclass(frozen=True)
class Beat:
    """The last sign of life of one service instance."""

    service: str
    instance: str
    state: str
    detail: Json
    age_seconds: float
    started_at: str | None = None

    @property
    def message(self) -> str | None:
        message = self.detail.get("message")
        return str(message) if message else None

    @property
    def is_ill(self) -> bool:
        return self.state in ILL_STATES


@dataclass(frozen=True)
class Part:
    """How one part is, in one word and in a sentence."""

    status: Status
    reason: str
    state: str | None = None
    instance: str | None = None
    beat_age_seconds: float | None = None


@dataclass(frozen=True)
class Health:
    parts: dict[str, Part] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """The worst of the parts; unknown parts follow from the database, which is ill or starting."""
        found = {part.status for part in self.parts.values()}
        return next((status for status in (Status.ILL, Status.STARTING) if status in found), Status.OK)

    def as_json(self) -> dict[str, Any]:
        return {"status": self.status, "parts": {name: asdict(part) for name, part in self.parts.items()}}


def judge(*, error: str | None, migrated: bool, beats: Sequence[Beat], uptime_seconds: float) -> Health:
    """The health of all parts.

    `error` says why the database does not answer, None when it does; `uptime_seconds` is how long
    this process has been looking.
    """
    database = _database(error, migrated, uptime_seconds)
    parts = {"database": database}
    for service in Service:
        own = [beat for beat in beats if beat.service == service]
        if database.status is Status.OK:
            parts[service] = _service(service, own, uptime_seconds)
        else:
            parts[service] = Part(Status.UNKNOWN, "heartbeats cannot be read until the database is well")
    return Health(parts)


def _database(error: str | None, migrated: bool, uptime_seconds: float) -> Part:
    if error is not None:
        return Part(Status.ILL, error)
    if not migrated:
        early = uptime_seconds < GRACE
        reason = "migrations are missing: run `ratchet migrate`"
        return Part(Status.STARTING if early else Status.ILL, reason)
    return Part(Status.OK, "answers, and its migrations are applied")


def _service(service: Service, beats: Sequence[Beat], uptime_seconds: float) -> Part:
    if not beats:
        if uptime_seconds < GRACE:
            return Part(Status.STARTING, f"no {service} has been seen yet")
        return Part(Status.ILL, f"no {service} has been seen for {uptime_seconds:.0f} s: is it running?")
    newest = min(beats, key=lambda beat: beat.age_seconds)
    if newest.age_seconds > HEARTBEAT_STALE:
        silent = f"the {service} has been silent for {newest.age_seconds:.0f} s: it crashed or hangs"
        return _part(Status.ILL, silent, newest)
    speaking = [beat for beat in beats if beat.age_seconds <= newest.age_seconds + SUCCESSION]
    ill = next((beat for beat in speaking if beat.is_ill), None)
    if ill is not None:
        return _part(Status.ILL, f"{ill.state}: {ill.message or 'it gave no reason'}", ill)
    leading = next((beat for beat in speaking if beat.state != ServiceState.STANDBY), newest)
    reason = f"{leading.state}: {leading.message}" if leading.message else leading.state
    return _part(Status.OK, reason, leading)


def _part(status: Status, reason: str, beat: Beat) -> Part:
    return Part(status, reason, beat.state, beat.instance, beat.age_seconds)
