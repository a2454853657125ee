"""What was measured of an adapter's parity, and where it is kept: `adapters/<track>/parity/<name>.json`.

The ledger has it too (`adapters.parity`); the file is for servers, which have no database.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError, PublishError
from services.core.models import Json

FOLDER = "parity"
REFERENCE = "adapter"  # on the base that it was trained and judged on


@dataclass(frozen=True)
class Leg:
    """One way of running the adapter, beside the way in which it was judged."""

    way: str  # trained, full, merged or served
    prompts: int  # answered greedily
    same: int  # of them, token for token (served: character for character)
    first_difference: int | None  # tokens that were equal before the first that was not, the least
    max_log_prob_difference: float | None  # of a token of the fixed texts, in nats; None: not to be had
    bits_per_byte_difference: float | None  # this way's less the judged way's

    @property
    def exact_match(self) -> float:
        return self.same / self.prompts

    @property
    def words(self) -> str:
        return f"{self.way} {self.same}/{self.prompts}"


@dataclass(frozen=True)
class Parity:
    """An adapter's measured parity; `legs` in the order in which they were measured."""

    measured_at: str  # ISO 8601, UTC
    adapter: str
    base: str  # how the weights of the base are that it was judged on: nf4, bfloat16, float32
    full: str  # how the full base is
    merged: str  # how a merged model is stored
    tokens: int  # written after a prompt at most
    legs: tuple[Leg, ...]

    @property
    def exact(self) -> bool:
        """Whether every answer was the same every way."""
        return all(leg.same == leg.prompts for leg in self.legs)

    @property
    def words(self) -> str:
        """One line for logs and tables."""
        legs = ", ".join(leg.words for leg in self.legs)
        return f"parity measured on {self.measured_at[:10]}: the same greedy answers {legs}"

    def as_json(self) -> Json:
        return {**asdict(self), "legs": [asdict(leg) for leg in self.legs]}


def from_json(fields: Any) -> Parity:
    """Raises ConfigurationError when it is no measurement."""
    try:
        legs = tuple(Leg(**leg) for leg in fields["legs"])
        return Parity(**{**fields, "legs": legs})
    except (KeyError, TypeError) as exc:
        raise ConfigurationError(f"not a measurement of parity: {exc}") from exc


def said(parity: Parity | None) -> str:
    """Whether an adapter may be called servable, in words."""
    return "parity not measured" if parity is None else parity.words


def of_release(track_dir: Path, name: str, roles: Sequence[str]) -> Parity | None:
    """Of an adapter, or of a team all that was measured of its roles; None when something was not."""
    if not roles:
        return read(track_dir, name)
    found = {role: read(track_dir, f"{name}/{role}") for role in roles}
    measured = {role: parity for role, parity in found.items() if parity is not None}
    if len(measured) < len(found):
        return None
    legs = [replace(leg, way=f"{role} {leg.way}") for role, parity in measured.items() for leg in parity.legs]
    oldest = min(measured.values(), key=lambda parity: parity.measured_at)
    return replace(oldest, adapter=name, legs=tuple(legs))


def path(track_dir: Path, name: str) -> Path:
    """name: of a release, or of one role of a team as round-0003/coder."""
    return track_dir / FOLDER / f"{name}.json"


def read(track_dir: Path, name: str) -> Parity | None:
    """What was measured; None when nothing was, or what lies there cannot be read."""
    try:
        return from_json(json.loads(path(track_dir, name).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def write(track_dir: Path, name: str, parity: Parity) -> Path:
    """Keep it, at once. Raises PublishError when the folder cannot be written."""
    target = path(track_dir, name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(parity.as_json(), indent=2) + "\n", encoding="utf-8")
        os.replace(unfinished, target)
    except OSError as exc:
        raise PublishError(exc.errno, f"{target} cannot be written: {exc.strerror or exc}") from exc
    return target
