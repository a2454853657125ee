"""What an alert is."""

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from services.core.models import Json


class Severity(StrEnum):
    BAD = "bad"  # nothing comes of it until somebody acts
    WAIT = "wait"  # it goes on; somebody should look


@dataclass(frozen=True)
class Alert:
    """One thing to look at, why, since when and what to do."""

    kind: str  # stalled, failing, refusing, disk or forgetting
    severity: Severity
    title: str
    text: str
    cure: str  # a sentence; commands stand in backquotes
    since: datetime | None = None  # None: not known
    track: str | None = None
    url: str | None = None  # of the page that shows more

    def as_json(self) -> Json:
        return asdict(self)
