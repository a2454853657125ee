"""What a check has to say."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from services.cli.environment import Environment
from services.core.models import Json


class Status(StrEnum):
    OK = "ok"
    WARNING = "warning"  # Ratchet works, less well or not for long
    ERROR = "error"  # something will not work until it is cured
    SKIPPED = "skipped"  # could not be looked at, or does not matter here


@dataclass(frozen=True)
class Finding:
    """One fact about this machine, in words; `cure` says what to do where something is to be done."""

    check: str
    status: Status
    says: str
    cure: str | None = None

    def as_json(self) -> Json:
        return asdict(self)


Check = Callable[[Environment], Iterable[Finding]]


def ok(check: str, says: str) -> Finding:
    return Finding(check, Status.OK, says)


def warning(check: str, says: str, cure: str) -> Finding:
    return Finding(check, Status.WARNING, says, cure)


def error(check: str, says: str, cure: str) -> Finding:
    return Finding(check, Status.ERROR, says, cure)


def skipped(check: str, says: str) -> Finding:
    return Finding(check, Status.SKIPPED, says)
