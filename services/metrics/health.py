"""Is every part well? Pure functions of what was last read; no clock, no database.

The processors are one part: they share the work, so one that lives stands in for one that died. Trainers are
judged track by track, and the part `trainer` is as ill as the worst of them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from services.core.models import HEARTBEAT_INTERVAL, HEARTBEAT_STALE, Json, Service, ServiceState

GRACE = 60.0  # seconds after the start of this process in which a part may still be missing
SUCCESSION = 2 * HEARTBEAT_INTERVAL  # seconds behind the newest beat: a predecessor, it speaks no more
ILL_STATES = frozenset(state.value for state in ServiceState if state.is_ill)
STOPPED, PAUSED = "stopped", "paused"  # states that no heartbeat says


class Status(StrEnum):
    OK = "ok"
    STARTING = "starting"  # not seen yet, and it is early
    UNKNOWN = "unknown"  # nothing can be known while the database is ill
    ILL = "ill"


SEVERITY = (Status.OK, Status.UNKNOWN, Status.STARTING, Status.ILL)  # the worst last


@dataclass(frozen=True)
class Beat:
    """The last sign of life of one service instance."""

    service: str
    instance: str
    state: str
    detail: Json
    age_seconds: float
    up_seconds: float | None = None  # since it started; None: not known

    @property
    def message(self) -> str | None:
        message = self.detail.get("message")
        return str(message) if message else None

    @property
    def track(self) -> str:
        """Which track a trainer holds or waits for; empty for a processor."""
        track = self.detail.get("track")
        return str(track) if track and self.service == Service.TRAINER else ""

    @property
    def is_ill(self) -> bool:
        return self.state in ILL_STATES

    def later(self, seconds: float) -> "Beat":
        """The same beat, so much older."""
        up = None if self.up_seconds is None else self.up_seconds + seconds
        return replace(self, age_seconds=self.age_seconds + seconds, up_seconds=up)


@dataclass(frozen=True)
class Departure:
    """The last instance of a service, or of a track's trainers, that stopped in good order."""

    service: str
    track: str  # of a trainer; empty for a processor
    age_seconds: float


@dataclass(frozen=True)
class VitalSigns:
    """What health is judged by; cheap to read."""

    migrated: bool
    beats: Sequence[Beat] = ()
    departures: Sequence[Departure] = ()
    paused: Collection[str] = ()  # tracks

    def later(self, seconds: float) -> "VitalSigns":
        """The same signs, looked at so many seconds after they were read."""
        beats = [beat.later(seconds) for beat in self.beats]
        left = [replace(one, age_seconds=one.age_seconds + seconds) for one in self.departures]
        return replace(self, beats=beats, departures=left)


@dataclass(frozen=True)
class Part:
    """How one part is, in one word and in a sentence; of the trainers also how each track's is."""

    status: Status
    reason: str
    state: str | None = None
    instance: str | None = None
    beat_age_seconds: float | None = None
    tracks: Mapping[str, "Part"] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """`tracks` is named where there are any."""
        found = {
            "status": self.status,
            "reason": self.reason,
            "state": self.state,
            "instance": self.instance,
            "beat_age_seconds": self.beat_age_seconds,
        }
        tracks = {name: part.as_json() for name, part in self.tracks.items()}
        return {**found, "tracks": tracks} if tracks else found


@dataclass(frozen=True)
class Health:
    parts: dict[str, Part] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """The worst of the parts; unknown parts follow from the database, which is ill or starting."""
        found = {part.status for part in self.parts.values()}
        return next((status for status in (Status.ILL, Status.STARTING) if status in found), Status.OK)

    def as_json(self) -> dict[str, Any]:
        return {"status": self.status, "parts": {name: part.as_json() for name, part in self.parts.items()}}


def judge(signs: VitalSigns, *, error: str | None, uptime_seconds: float) -> Health:
    """The health of all parts.

    `error` says why the database does not answer, None when it does; `uptime_seconds` is how long
    this process has been looking.
    """
    database = _database(error, signs.migrated, uptime_seconds)
    if database.status is not Status.OK:
        unknown = Part(Status.UNKNOWN, "heartbeats cannot be read until the database is well")
        return Health({"database": database, **{str(service): unknown for service in Service}})
    parts = {str(service): _service(service, _tracks(service, signs), uptime_seconds) for service in Service}
    return Health({"database": database, **parts})


def _database(error: str | None, migrated: bool, uptime_seconds: float) -> Part:
    if error is not None:
        return Part(Status.ILL, error)
    if not migrated:
        early = uptime_seconds < GRACE
        reason = "migrations are missing: run `ratchet migrate`"
        return Part(Status.STARTING if early else Status.ILL, reason)
    return Part(Status.OK, "answers, and its migrations are applied")


def _tracks(service: Service, signs: VitalSigns) -> dict[str, Part]:
    """How the trainers of each track are that one has been seen of; of the processors there is one, ''."""
    beats = [beat for beat in signs.beats if beat.service == service]
    left = {one.track: one for one in signs.departures if one.service == service}
    return {
        track: _track(service, track, [beat for beat in beats if beat.track == track], left.get(track), signs)
        for track in sorted({beat.track for beat in beats} | left.keys())
    }


def _service(service: Service, tracks: Mapping[str, Part], uptime_seconds: float) -> Part:
    """The worst of its tracks speaks; of those that are alike, one that lives and was heard last."""
    if not tracks:
        if uptime_seconds < GRACE:
            return Part(Status.STARTING, f"no {service} has been seen yet")
        return Part(Status.ILL, f"no {service} has been seen for {uptime_seconds:.0f} s: is it running?")

    def urgency(name: str) -> tuple[int, bool, float]:
        part = tracks[name]
        age = part.beat_age_seconds
        return SEVERITY.index(part.status), age is not None, -(age or 0.0)

    name = max(tracks, key=urgency)
    worst = tracks[name]
    reason = f"{name}: {worst.reason}" if len(tracks) > 1 else worst.reason
    shown = {track: part for track, part in tracks.items() if track}
    return Part(worst.status, reason, worst.state, worst.instance, worst.beat_age_seconds, shown)


def _track(
    service: Service, track: str, beats: Sequence[Beat], left: Departure | None, signs: VitalSigns
) -> Part:
    """How the trainers of one track are, or the processors; there is a beat or a departure."""
    if not beats:
        reason = "stopped in good order" + (f" {_ago(left.age_seconds)}" if left is not None else "")
        return Part(Status.OK, reason, STOPPED)
    newest = min(beats, key=lambda beat: beat.age_seconds)
    if newest.age_seconds > HEARTBEAT_STALE:
        of_track = f" of {track}" if track else ""
        silent = (
            f"the {service}{of_track} has been silent for {newest.age_seconds:.0f} s: it crashed or hangs"
        )
        found = _part(Status.ILL, silent, newest)
    else:
        found = _speaking(beats, newest)
    if track in signs.paused and found.status is Status.ILL:
        return replace(found, status=Status.OK, reason=f"{PAUSED}; {found.reason}", state=PAUSED)
    return found


def _speaking(beats: Sequence[Beat], newest: Beat) -> Part:
    """What those say who are neither behind nor replaced."""
    speaking = [
        beat for beat in beats
        if beat.age_seconds <= newest.age_seconds + SUCCESSION and not _is_replaced(beat, newest)
    ]  # fmt: skip
    ill = next((beat for beat in speaking if beat.is_ill), None)
    if ill is not None:
        return _part(Status.ILL, f"{ill.state}: {ill.message or 'it gave no reason'}", ill)
    leading = next((beat for beat in speaking if beat.state != ServiceState.STANDBY), newest)
    reason = f"{leading.state}: {leading.message}" if leading.message else leading.state
    return _part(Status.OK, reason, leading)


def _is_replaced(beat: Beat, newest: Beat) -> bool:
    """Whether the newest one started after the other's last word."""
    return newest.up_seconds is not None and beat.age_seconds > newest.up_seconds


def _ago(seconds: float) -> str:
    """75 → 1 min ago."""
    for name, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {name} ago"
    return f"{seconds:.0f} s ago"


def _part(status: Status, reason: str, beat: Beat) -> Part:
    return Part(status, reason, beat.state, beat.instance, beat.age_seconds)
