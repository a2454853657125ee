"""Publishing: a finished adapter or model gets its name in one step, and `current` moves in one more.

The order is PostgreSQL's own for durable renames: write below a temporary name on the same volume,
fsync the files, rename, fsync the directory. Only then is the row committed (by the ledger), and only
then `current` moved. A crash between any two leaves the adapter before standing; `settle` tidies up.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from services.core.errors import PublishError, is_disk_full
from services.core.process import failpoint

MANIFEST = "manifest.json"
CURRENT = "current"
TEMPORARY = ".publishing-"
FORBIDDEN_SUFFIXES = (".bin", ".pt", ".pkl", ".pickle")  # pickles run code when they are loaded
HASHED_AT_ONCE = 8  # files: one after the other, a 32B model's 65 GB would take minutes


def publish(
    track_dir: Path,
    name: str,
    write: Callable[[Path], None],
    manifest: Mapping[str, Any],
    on_file: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Write an adapter or a model through `write(folder)` and name it; the manifest with file hashes.

    `on_file` is called after each file that was hashed or brought to disk: a whole model takes a while.
    What an earlier, uncommitted attempt left under the same name is replaced. Raises PublishError when
    the disk is full or not writable: nothing of it remains, what was published before is untouched.
    """
    temporary = track_dir / f"{TEMPORARY}{name}-{os.getpid()}"
    try:
        track_dir.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        write(temporary)
        failpoint("publish.after_write")
        complete = {**manifest, "files": _hashes(temporary, on_file)}
        (temporary / MANIFEST).write_text(
            json.dumps(complete, indent=2, allow_nan=False) + "\n", encoding="utf-8"
        )
        for path in sorted(temporary.rglob("*")):
            if path.is_file():
                path.chmod(0o644)  # a server runs as someone else
            _fsync(path)
            on_file()
        _fsync(temporary)
        temporary.chmod(0o755)
        shutil.rmtree(track_dir / name, ignore_errors=True)
        os.rename(temporary, track_dir / name)
        _fsync(track_dir)
        failpoint("publish.after_rename")
        return complete
    except Exception as exc:
        shutil.rmtree(temporary, ignore_errors=True)
        if not (isinstance(exc, OSError) or is_disk_full(exc)):
            raise
        raise PublishError(
            f"the adapter cannot be written to {track_dir}: {exc}; the one before stands"
        ) from exc


def point_current(track_dir: Path, name: str) -> None:
    """Move `current` to the named adapter, atomically: a reader sees the old one or the new one."""
    link = track_dir / CURRENT
    if link.is_symlink() and link.readlink() == Path(name):
        return
    temporary = track_dir / f"{TEMPORARY}{CURRENT}-{os.getpid()}"
    try:
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(name)
        failpoint("publish.before_current")
        os.replace(temporary, link)
        _fsync(track_dir)
    except OSError as exc:
        raise PublishError(exc.errno, f"{link} cannot be moved to {name}: {exc.strerror or exc}") from exc


def follow(track_dir: Path, champion: str | None) -> bool:
    """Have `current` point to the champion, or not be there without one; whether anything was moved."""
    link = track_dir / CURRENT
    if champion is not None:
        if link.is_symlink() and link.readlink() == Path(champion):
            return False
        point_current(track_dir, champion)
        return True
    if not link.is_symlink():
        return False
    try:
        link.unlink(missing_ok=True)
        _fsync(track_dir)
    except OSError as exc:
        raise PublishError(exc.errno, f"{link} cannot be removed: {exc.strerror or exc}") from exc
    return True


def discard(track_dir: Path, name: str) -> None:
    """Remove an adapter that the ledger does not know."""
    shutil.rmtree(track_dir / name, ignore_errors=True)


def settle(track_dir: Path, champion: str | None, known: set[str]) -> None:
    """After a crash: `current` follows the ledger, temporaries and unrecorded adapters go."""
    if not track_dir.is_dir():
        return
    for path in track_dir.iterdir():
        unrecorded = path.name.startswith("round-") and path.name not in known
        if path.name.startswith(TEMPORARY) or unrecorded:
            path.unlink() if path.is_symlink() else shutil.rmtree(path, ignore_errors=True)
    follow(track_dir, champion)


def verify(folder: Path) -> dict[str, Any]:
    """The manifest of a published adapter or model whose files are all there and unchanged.

    Raises PublishError that names the file otherwise.
    """
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        found = _hashes(folder)
    except (OSError, ValueError) as exc:
        raise PublishError(f"{folder} is not a published adapter: {exc}") from exc
    for name, expected in manifest["files"].items():
        if found.get(name) != expected:
            raise PublishError(
                f"{folder / name} is {'changed' if name in found else 'missing'}: do not use it"
            )
    return manifest


def _hashes(folder: Path, on_file: Callable[[], None] = lambda: None) -> dict[str, str]:
    """SHA-256 of every file but the manifest, by its path below the folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    for path in paths:
        if path.suffix in FORBIDDEN_SUFFIXES:
            raise PublishError(f"{path.name} may hold a pickle: only safetensors and JSON are published")
    hashes = {}
    with ThreadPoolExecutor(HASHED_AT_ONCE) as pool:
        for path, digest in zip(paths, pool.map(_sha256, paths), strict=True):
            hashes[str(path.relative_to(folder))] = digest
            on_file()
    return hashes


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
