"""The states of a forgetting, and the numbers that describe one."""

from dataclasses import asdict, dataclass
from enum import StrEnum

from services.core.models import Json


class State(StrEnum):
    """How far it is. Every step is a transaction of its own: after a crash the next one goes on from here."""

    BARRED = "barred"  # its tombstones stand: nothing of it comes in again or is selected
    WITHDRAWN = "withdrawn"  # adapters are marked, champions moved, open rounds closed
    PROBED = "probed"  # what the champion gave up of it was measured; the passages are kept for later
    ERASED = "erased"  # its texts are gone from every table
    DONE = "done"  # files are gone too, what is served now was measured


class Policy(StrEnum):
    REFUSE = "refuse"  # no round continues from a marked adapter, and none becomes the champion
    WARN = "warn"  # marked, and left where it is


@dataclass(frozen=True)
class Content:
    content_id: int
    cluster_id: int
    bytes: int
    is_earlier: bool  # a version that its file does not hold any more
    is_shared: bool  # a file outside holds it too
    is_unclear: bool  # an old version that may be of a file outside, which is nearly the same


@dataclass(frozen=True)
class Adapter:
    adapter_id: int
    track: str
    directory: str
    round_id: int
    contents: int  # forgotten ones it trained on in its own round; 0: by inheritance alone
    is_champion: bool

    @property
    def name(self) -> str:
        return f"{self.track}/{self.directory}"


@dataclass(frozen=True)
class OpenRound:
    track: str
    number: int

    @property
    def name(self) -> str:
        return f"round-{self.number:04}"


@dataclass(frozen=True)
class Figures:
    """What one model gave up."""

    adapter: str | None  # None: the base model
    passages: int
    extracted: int  # of them, written out greedily
    tokens: int  # of all passages
    matched_tokens: int  # of them, the likeliest after the true ones before them
    exposure_bits: float | None = None  # mean over strings of the texts; None: there were none

    def as_json(self) -> Json:
        return asdict(self)
