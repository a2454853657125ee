"""Why a round failed, in the words of the process that failed first.

A process that loses its peers fails too, with words about sockets; so each leaves its own in a file of the
round's folder, and the daemon takes the earliest.
"""

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

FILES = "failure-*.json"


@dataclass(frozen=True)
class Failure:
    at: float  # seconds since 1970
    rank: int
    message: str
    permanent: bool  # trying again at once will not cure it


def leave(folder: Path, message: str, *, permanent: bool = False) -> None:
    """To be called by a process, of whatever rank, that is about to end with an error."""
    rank = int(os.environ.get("RANK", "0"))
    failure = Failure(time.time(), rank, message, permanent)
    path = folder / FILES.replace("*", str(rank))
    temporary = path.with_suffix(".tmp")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(asdict(failure)), encoding="utf-8")
        os.replace(temporary, path)
    except OSError:
        pass  # on a full disk the log has to do


def first(folder: Path) -> Failure | None:
    """The earliest one left since `clear`; None when no process said anything."""
    found = []
    for path in folder.glob(FILES):
        try:
            found.append(Failure(**json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError):
            continue  # torn by a crash
    return min(found, key=lambda failure: failure.at, default=None)


def clear(folder: Path) -> None:
    for path in folder.glob(FILES):
        path.unlink(missing_ok=True)
