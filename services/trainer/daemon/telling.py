"""What the daemon says of itself: its heartbeat in the database."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from services.core.db import Database, as_json
from services.core.models import Service, ServiceState
from services.core.room import room
from services.trainer.heartbeat import Beat

OF_THE_CHILD = ("counter", "state", "round_id", "message", "permanent")  # of a beat; the daemon has its own


@dataclass(frozen=True)
class Status:
    """What the daemon's heartbeat says beside the figures of the round."""

    state: ServiceState
    message: str | None = None
    new_contents: int = 0
    paused: bool = False  # no new round begins


class Teller:
    """One daemon's status. What asks the database raises DatabaseUnavailableError."""

    def __init__(self, database: Database, track: str, instance: str, folders: Sequence[Path]) -> None:
        """folders: whose disks the heartbeat tells the room of."""
        self._database = database
        self._track = track
        self._instance = instance
        self._folders = folders
        self.status = Status(ServiceState.IDLE, "starting")

    def say(self, state: ServiceState, message: str | None) -> None:
        self.status = replace(self.status, state=state, message=message)

    def note(self, **changes: Any) -> None:
        """Fields of the status, by name."""
        self.status = replace(self.status, **changes)

    def beat(self, child: Beat, needed: int) -> None:
        """child: its newest; needed: so much that is new begins a round."""
        figures = {name: value for name, value in asdict(child).items() if name not in OF_THE_CHILD}
        detail = {
            "track": self._track,
            **figures,
            "message": self.status.message,
            "paused": self.status.paused,
            "new_contents": self.status.new_contents,
            "needed": needed,
            "disks": room(self._folders),
        }
        self._tell("beat", state=self.status.state, detail=as_json(detail))

    def end(self) -> None:
        self._tell("end_beats")

    def _tell(self, query: str, **parameters: Any) -> None:
        with self._database.transaction() as tx:
            tx.execute(query, service=Service.TRAINER, instance=self._instance, **parameters)
