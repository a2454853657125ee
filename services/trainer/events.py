"""Events as the database has them (sql/migrations/0012_events.sql), and a sentence about each."""

import datetime
from dataclasses import dataclass
from typing import Any

from services.core.models import Json

BASE = "the base model"


@dataclass(frozen=True)
class Event:
    """Something that happened; ids grow in the order in which events were committed."""

    event_id: int
    uid: str  # of the message about it, wherever and however often it is sent
    kind: str  # as round.promoted
    track: str | None
    round_number: int | None
    adapter: str | None  # below adapters/<track>/; None: none, or the base model
    payload: Json
    at: datetime.datetime

    @classmethod
    def of(cls, row: Any) -> "Event":
        """From a row of `events`."""
        return cls(
            row.id, str(row.uid), row.kind, row.track, row.round_number, row.adapter, row.payload, row.at
        )

    def as_json(self) -> Json:
        """What a message and `ratchet events --json` say of it."""
        timestamp = self.at.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")
        return {"type": self.kind, "timestamp": timestamp, "data": self._data()}

    def _data(self) -> Json:
        place = {"track": self.track, "round": self.round_number, "adapter": self.adapter}
        return {"id": self.event_id, **place, **self.payload}


def sentence(event: Event) -> str:
    """The event as one tells it: `demo: round 4 was promoted, …`."""
    told = SENTENCES.get(event.kind, "{message}")
    if (field := OF_TEAMS.get(event.kind)) is not None and field[0] in event.payload:
        told = field[1]
    said = told.format_map(_Words(event))
    if reason := event.payload.get("reason"):
        said = f"{said}: {reason}"
    return said if event.track is None else f"{event.track}: {said}"


SENTENCES = {
    "round.started": "round {round} started on {contents} contents, from {continues_from}",
    "round.promoted": "round {round} was promoted, {adapter} is the champion, {gain_percent} % fewer bits",
    "round.refused": "round {round} was refused",
    "round.failed": "round {round} failed",
    "adapter.promoted": "{adapter} was made the champion by {actor}",
    "adapter.rolled_back": "rolled back from {before} to {adapter} by {actor}",
    "adapter.rejected": "{adapter} was rejected by {actor}",
    "adapter.pinned": "{adapter} was pinned by {actor}",
    "adapter.unpinned": "{adapter} was unpinned by {actor}",
    "source.forgotten": "{target} was forgotten by {actor}",
    "service.stalled": "the {service} is ill: {state}, last heard {silent_s} s ago; {message}",
    "service.recovered": "the {service} is well again",
    "request.done": "what {actor} asked, {asked}, is done: {message}",
    "request.failed": "what {actor} asked, {asked}, was not done: {message}",
}
OF_TEAMS = {  # kind → what the payload of a round has in which a team practises, and how it is told then
    "round.started": ("tasks", "round {round} started on {tasks} tasks, from {continues_from}"),
    "round.promoted": (
        "gain_points",
        "round {round} was promoted, {adapter} is the champion, {gain_points} points more tasks solved",
    ),
}
ABSENT = {"continues_from": BASE, "adapter": BASE, "before": BASE, "message": "it says nothing"}


class _Words(dict[str, object]):
    """What the sentences are filled in with; what an event does not say is `?`, or as ABSENT has it."""

    def __init__(self, event: Event) -> None:
        said = {"round": event.round_number, "adapter": event.adapter, **event.payload}
        super().__init__({name: value for name, value in said.items() if value is not None})

    def __missing__(self, name: str) -> str:
        return ABSENT.get(name, "?")
