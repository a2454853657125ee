"""Adapters that are not to be served any more, by any name: a file each in `adapters/<track>/withdrawn/`.

For servers, which have no database. Whoever withdraws an adapter marks it, whoever takes that back lifts it.
"""

import contextlib
from pathlib import Path

from services.core.errors import PublishError

FOLDER = "withdrawn"


def mark(track_dir: Path, name: str, reason: str) -> None:
    """Raises PublishError when the folder cannot be written: then the adapter may be served on."""
    try:
        (track_dir / FOLDER).mkdir(exist_ok=True)
        (track_dir / FOLDER / name).write_text(f"{reason}\n", encoding="utf-8")
    except OSError as exc:
        where = track_dir / FOLDER / name
        raise PublishError(exc.errno, f"{where} cannot be written: {exc.strerror or exc}") from exc


def lift(track_dir: Path, name: str) -> None:
    """Have it served again; one that was not withdrawn is as it was."""
    with contextlib.suppress(OSError):
        (track_dir / FOLDER / name).unlink(missing_ok=True)


def reason(track_dir: Path, name: str) -> str | None:
    """Why it was withdrawn; None: it was not."""
    try:
        return (track_dir / FOLDER / name).read_text(encoding="utf-8").strip() or "no reason was given"
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        return f"its mark cannot be read: {exc}"
