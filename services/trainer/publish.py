"""Publishing: a finished adapter, model or team gets its name in one step, and `current` moves in one more.

The order is PostgreSQL's own for durable renames: write below a temporary name on the same volume,
fsync the files, rename, fsync the directory. Only then is the row committed (by the ledger), and only
then `current` moved. A crash between any two leaves the adapter before standing; `settle` tidies up.

A published folder is never written to again. Whoever reads more than one file of it asks `resolve` once
and reads in the folder it names: between two looks through `current` the champion may have moved.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

from services.core.errors import PublishError, UnsafeAdapterError, is_disk_full
from services.core.process import failpoint
from services.trainer import seals
from services.trainer.vetting import listing, parsed, teams, vet

MANIFEST = "manifest.json"
CURRENT = "current"
TEAM = "team"  # the manifest's kind of a release with an adapter a role; else "adapter" or "model"
TEMPORARY = ".publishing-"
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
    the disk is full or not writable, UnsafeAdapterError for what no one should load: what was published
    before is untouched, and nothing of this one outlasts the next start (`settle`).
    """
    temporary = track_dir / f"{TEMPORARY}{name}-{os.getpid()}"
    try:
        _make(track_dir)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        write(temporary)
        failpoint("publish.after_write")
        vet(temporary, manifest.get("base_model"))
        complete = {**manifest, "files": _hashes(temporary, on_file)}
        (temporary / MANIFEST).write_text(
            json.dumps(complete, indent=2, allow_nan=False) + "\n", encoding="utf-8"
        )
        _bring_to_disk(temporary, on_file)
        shutil.rmtree(track_dir / name, ignore_errors=True)
        os.rename(temporary, track_dir / name)
        _fsync(track_dir)
        failpoint("publish.after_rename")
        seals.seal(track_dir / name, seals.state(track_dir / name))
        return complete
    except Exception as exc:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(exc, PublishError) or not (isinstance(exc, OSError) or is_disk_full(exc)):
            raise
        raise PublishError(
            f"the adapter cannot be written to {track_dir}: {exc}; the one before stands"
        ) from exc


def resolve(track_dir: Path) -> Path:
    """The champion's folder, whose files belong together however often `current` moves from now on.

    Raises PublishError when the track has no champion.
    """
    link = track_dir / CURRENT
    try:
        return link.resolve(strict=True)
    except OSError as exc:
        raise PublishError(f"{link} leads to no adapter: no round of the track was promoted") from exc


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
    seals.settle(track_dir)
    follow(track_dir, champion)


def verify(folder: Path) -> dict[str, Any]:
    """The manifest of a published adapter or model: every file there, unchanged, and safe to load.

    folder: may be `current`, which is looked through once. Raises PublishError that names the file
    otherwise, and why; its UnsafeAdapterError for what no one should load.
    """
    folder = folder.resolve()
    manifest = _manifest(folder)
    try:
        found = _hashes(folder)
    except OSError as exc:
        raise PublishError(f"{folder} cannot be read: {exc}") from exc
    listed: dict[str, str] = manifest["files"]
    for name in sorted(listed.keys() | found.keys()):
        if found.get(name) != listed.get(name):
            what = "missing" if name not in found else "changed" if name in listed else "not in the manifest"
            raise PublishError(f"{folder / name} is {what}: do not use it")
    vet(folder, manifest.get("base_model"))
    return manifest


def verify_sealed(folder: Path) -> dict[str, Any]:
    """As `verify`, but files that lie as they did when they were last hashed are not read again.

    Milliseconds, whatever the size; see `seals` for what that cannot notice. Raises as `verify` does.
    """
    folder = folder.resolve()
    if seals.is_sealed(folder):
        manifest = _manifest(folder)
        vet(folder, manifest.get("base_model"))
        return manifest
    before = seals.state(folder) if folder.is_dir() else {}
    manifest = verify(folder)
    if seals.state(folder) == before:
        seals.seal(folder, before)
    return manifest


def _manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder of files that may be read; what it lists lies below the folder."""
    listing(folder)
    if not (folder / MANIFEST).is_file():
        raise PublishError(f"{folder} is not a published adapter: it has no {MANIFEST}")
    manifest = parsed(folder / MANIFEST)
    if not (isinstance(manifest.get("files"), dict) and isinstance(manifest.get("base_model"), str | None)):
        raise PublishError(f"{folder} is not a published adapter: its {MANIFEST} lists no files")
    if (manifest.get("kind") == TEAM) != teams.is_team(folder):
        has = "a" if teams.is_team(folder) else "no"
        raise UnsafeAdapterError(
            f"{folder / MANIFEST} says kind {manifest.get('kind')!r}, but there is {has} {teams.PROFILES}"
        )
    for name in manifest["files"]:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise UnsafeAdapterError(f"{folder / MANIFEST} lists {name!r}, which leads out of the folder")
    return manifest


def _make(track_dir: Path) -> None:
    """The track's folder, which is still there after a loss of power."""
    if not track_dir.is_dir():
        track_dir.mkdir(parents=True, exist_ok=True)
        _fsync(track_dir.parent)


def _bring_to_disk(folder: Path, on_file: Callable[[], None]) -> None:
    """Every file and folder, readable by all: a server runs as someone else."""
    for path in sorted(folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
        _fsync(path)
        on_file()
    folder.chmod(0o755)
    _fsync(folder)


def _hashes(folder: Path, on_file: Callable[[], None] = lambda: None) -> dict[str, str]:
    """SHA-256 of every file but the manifest, by its path below the folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
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
