"""What can be served: published folders, read and checked before a server is told of them."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.core.errors import PublishError, ServingError, UnsafeAdapterError
from services.serving import fits
from services.serving.names import Name, asked_as
from services.trainer import publish, withdrawn
from services.trainer.parity import record
from services.trainer.parity.record import Parity
from services.trainer.vetting import teams

BASE = "base"  # what the base model is called
NAME = re.compile(r"^round-[0-9]{4,}$")  # of a published folder
CONFIG = "adapter_config.json"


@dataclass(frozen=True)
class Served:
    """A published adapter or team. It never changes under its name, so its name says what it is."""

    track: str
    name: str  # as round-0003
    folder: Path  # the real one, not `current`
    digest: str  # SHA-256 of its manifest, which holds those of its files
    base_model: str
    parity: Parity | None  # None: it was not measured, or not of every role
    roles: tuple[str, ...] = ()  # of a team, in the order in which they are asked; none: one adapter

    def __str__(self) -> str:
        return f"{self.track}@{self.name}"

    @property
    def parts(self) -> dict[str, Path]:
        """What the server loads: its name there → the adapter's folder. All of them, or nothing is served."""
        if not self.roles:
            return {self.model(None): self.folder}
        return {self.model(role): self.folder / role for role in self.roles}

    def model(self, role: str | None) -> str:
        """What the server and the answers call it. Raises ServingError for a role that it has not."""
        if role in self.roles or (role is None and not self.roles):
            return Name(role, self.name).of(self.track)
        names = ", then ".join(asked_as(self.track, each) for each in self.roles)
        if role is None:
            raise ServingError(f"{self} is a team: ask {names}")
        what = f"a team: ask {names}" if self.roles else f"one adapter: ask {self.track}"
        raise ServingError(f"{self} has no role {role!r}, it is {what}")


def roles(track_dir: Path, name: str) -> tuple[str, ...]:
    """Of a published team; none of an adapter, nor of what cannot be read."""
    try:
        if teams.is_team(track_dir / name):
            return tuple(profile.role for profile in teams.profiles(track_dir / name))
    except (OSError, UnsafeAdapterError):
        pass
    return ()


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
    found = roles(track_dir, name)
    complaint = why_not(folder, manifest, max_rank)
    if complaint is not None:
        raise ServingError(f"{track_dir.name}@{name} is not served: {complaint}")
    return Served(
        track=track_dir.name,
        name=name,
        folder=folder,
        digest=digest,
        base_model=str(manifest.get("base_model") or manifest["recipe"]["base_model"]),
        parity=record.of_release(track_dir, name, found),
        roles=found,
    )


def why_not(folder: Path, manifest: Mapping[str, Any], max_rank: int) -> str | None:
    """Why a server would not take a published release; None: it would."""
    if manifest.get("kind") == "model":
        return (
            "it is a whole model, and only adapters are exchanged in a running server: start one with"
            f" {folder} as its model"
        )
    for role in roles(folder.parent, folder.name) or (".",):
        try:
            config = json.loads((folder / role / CONFIG).read_text(encoding="utf-8"))
            complaint = fits.complaint(config, max_rank)
        except (OSError, ValueError, TypeError, AttributeError) as exc:
            complaint = f"its {CONFIG} cannot be read: {exc}"
        if complaint is not None:
            return complaint
    return None


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none yet"
