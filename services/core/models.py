"""Words that more than one service speaks: states and roles as the database stores them."""

from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class RoundState(StrEnum):
    OPEN = "open"  # snapshot taken; a child trains it, or will when the daemon is back
    PROMOTED = "promoted"  # its candidate became the champion
    REFUSED = "refused"  # the gate kept the champion
    FAILED = "failed"  # it crashed too often and was set aside


class ContentRole(StrEnum):
    TRAIN = "train"  # the optimizer sees it
    VALIDATION = "validation"  # early stopping sees it
    HELD_OUT = "held_out"  # only the gate sees it
    REPLAY = "replay"  # the optimizer sees it once more: an earlier round was promoted with it


class Subject(StrEnum):
    BASE = "base"  # the model without any adapter
    CHAMPION = "champion"  # the best adapter so far
    CANDIDATE = "candidate"  # the adapter of this round


class Service(StrEnum):
    PROCESSOR = "processor"
    TRAINER = "trainer"


class ServiceState(StrEnum):
    """What a heartbeat says its service is doing. The last three make `/health` a 503."""

    IDLE = "idle"  # waiting for work
    SCANNING = "scanning"  # processor: walking and storing
    STARTING = "starting"  # trainer: a child is starting or loading a model; may take long
    TRAINING = "training"  # trainer: optimizer steps
    EVALUATING = "evaluating"  # trainer: held-out loss
    PUBLISHING = "publishing"  # trainer: writing and moving an adapter
    STANDBY = "standby"  # trainer: another one holds the track
    STALLED = "stalled"  # trainer: the child stopped making progress
    RECOVERING = "recovering"  # trainer: the child crashed; the round is being taken up again
    ERROR = "error"  # it cannot work; detail says why

    @property
    def is_ill(self) -> bool:
        return self in (ServiceState.STALLED, ServiceState.RECOVERING, ServiceState.ERROR)


class RequestKind(StrEnum):
    """What a person may ask of a track's trainer from outside."""

    TRAIN = "train"  # begin a round with the new contents there are, however few
    PAUSE = "pause"  # begin none until `resume`; one that runs goes on
    RESUME = "resume"
    PROMOTE = "promote"  # the moves of a champion: services/trainer/promotions/
    REJECT = "reject"
    ROLLBACK = "rollback"
    PIN = "pin"
    UNPIN = "unpin"
    FORGET = "forget"  # a source, folder or file


class RequestState(StrEnum):
    WAITING = "waiting"  # for the trainer of its track, an hour at most
    DONE = "done"
    FAILED = "failed"  # refused, or nobody took it up; the message says why


HEARTBEAT_INTERVAL = 5.0  # seconds between two beats of a living service
HEARTBEAT_STALE = 45.0  # seconds after which a silent service counts as dead: /health says so within 90

EVENT_GROUPS = {  # what WEBHOOK_EVENTS and `ratchet events --kind` call several kinds of events
    "start": ("round.started",),
    "promotion": ("round.promoted", "adapter.promoted"),
    "refusal": ("round.refused",),
    "failure": ("round.failed",),
    "rollback": ("adapter.rolled_back", "adapter.rejected"),
    "pin": ("adapter.pinned", "adapter.unpinned"),
    "forgetting": ("source.forgotten",),
    "stall": ("service.stalled", "service.recovered"),
    "request": ("request.done", "request.failed"),
}
