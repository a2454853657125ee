"""What can be served: published folders, read and checked before a server is told of them."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.core.errors import PublishError, ServingError
from services.serving import fits
from services.trainer import publish, withdrawn
from services.trainer.parity import record
from services.trainer.parity.record import Parity

BASE = "base"  # what the base model is called
NAME = re.compile(r"^round-[0-9]{4,}$")  # of a published folder
CONFIG = "adapter_config.json"


@dataclass(frozen=True)
class Served:
    """A published adapter. It never changes under its name, so its name says what it is."""

    track: str
    name: str  # as round-0003
    folder: Path  # the real one, not `current`
    digest: str  # SHA-256 of its manifest, which holds those of its files
    base_model: str
    parity: Parity | None  # None: it was not measured

    @property
    def model(self) -> str:
        """What the server and the answers call it."""
        return f"{self.track}@{self.name}"


def current(track_dir: Path) -> str | None:
    """The name that `current` points to; None without a champion: the base model is it."""
    try:
        return (track_dir / publish.CURRENT).readlink().name
    except OSError:
        return None


def published(track_dir: Path) -> list[str]:
    """The names of the track's adapters that may be asked for, in order."""
    try:
        names = sorted(path.name for path in track_dir.iterdir() if NAME.match(path.name))
        return [name for name in names if is_offered(track_dir, name)]
    except OSError:
        return []


def is_offered(track_dir: Path, name: str) -> bool:
    """Whether it lies there and was not withdrawn."""
    return (track_dir / name).is_dir() and withdrawn.reason(track_dir, name) is None


def open_adapter(track_dir: Path, name: str, max_rank: int) -> Served:
    """A published adapter that the server takes, its files unchanged since it was published.

    Raises ServingError when there is none of that name, it was withdrawn, it is damaged, or the server would
    refuse it.
    """
    folder = track_dir.resolve() / name
    if not NAME.match(name) or not folder.is_dir():
        raise ServingError(f"{track_dir.name} has no adapter {name}: it has {_listed(published(track_dir))}")
    why = withdrawn.reason(track_dir, name)
    if why is not None:
        raise ServingError(f"{track_dir.name}@{name} is not served: it was withdrawn ({why})")
    try:
        manifest = publish.verify(folder)
        digest = hashlib.sha256((folder / publish.MANIFEST).read_bytes()).hexdigest()
    except (OSError, ValueError) as exc:
        reason = str(exc) if isinstance(exc, PublishError) else f"{folder}: {exc}"
        raise ServingError(f"{track_dir.name}@{name} is not served: {reason}") from exc
    complaint = _complaint(folder, manifest, max_rank)
    if complaint is not None:
        raise ServingError(f"{track_dir.name}@{name} is not served: {complaint}")
    return Served(
        track=track_dir.name,
        name=name,
        folder=folder,
        digest=digest,
        base_model=str(manifest.get("base_model") or manifest["recipe"]["base_model"]),
        parity=record.read(track_dir, name),
    )


def _complaint(folder: Path, manifest: Mapping[str, Any], max_rank: int) -> str | None:
    if manifest.get("kind") == "model":
        return (
            "it is a whole model, and only adapters are exchanged in a running server: start one with"
            f" {folder} as its model"
        )
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        return fits.complaint(config, max_rank)
    except (OSError, ValueError, TypeError, AttributeError) as exc:
        return f"its {CONFIG} cannot be read: {exc}"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none yet"
