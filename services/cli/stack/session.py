"""What a running `ratchet up` says of itself in RATCHET_HOME/run/stack.json."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from services.core.models import Json


@dataclass
class Session:
    """One run of the stack, for those who ask about it."""

    dashboard: str  # its address
    database: Json = field(default_factory=dict)  # host, port, dbname
    sandbox: Json = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # how long each stage of the start took

    def write(self, home: Path) -> None:
        unfinished = _file(home).with_name(".stack.json")
        unfinished.write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")
        unfinished.replace(_file(home))


def read(home: Path) -> Json:
    """The fields of this home's Session; empty when none runs."""
    try:
        document = json.loads(_file(home).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def forget(home: Path) -> None:
    """It has ended."""
    _file(home).unlink(missing_ok=True)


def _file(home: Path) -> Path:
    return home / "run" / "stack.json"
