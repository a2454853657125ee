"""The seal of a published folder: how its files lay on the disk when they were last hashed.

A file whose inode, size and times of change are those of the seal was not written since: the kernel sets the
time of the inode's change (ctime) at every write, and no program can set it back. So a rollback need not read
gigabytes again. What the seal cannot see is a disk that gives back other bytes than it was given, and a
write within the same tick of the kernel's clock (4 ms) in which the folder was hashed.

A copy, a restored backup, a changed mode, a missing seal: the files are hashed again.
"""

import json
import os
from pathlib import Path
from stat import S_ISDIR

SEALS = ".seals"  # beside the folders of a track
State = dict[str, list[int]]


def state(folder: Path) -> State:
    """Inode, size in bytes, mtime and ctime in ns of every file, by its path below the folder."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        if not S_ISDIR(status.st_mode):
            key = str(path.relative_to(folder))
            found[key] = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    return found


def seal(folder: Path, hashed: State) -> None:
    """Keep the state in which the files were hashed; without room or right to write there is no seal."""
    path = _path(folder)
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        path.parent.mkdir(exist_ok=True)
        temporary.write_text(json.dumps(hashed), encoding="utf-8")
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)


def is_sealed(folder: Path) -> bool:
    """Whether every file lies as it did when it was hashed, and no other beside them."""
    try:
        return bool(json.loads(_path(folder).read_text(encoding="utf-8")) == state(folder))
    except (OSError, ValueError):
        return False


def settle(track_dir: Path) -> None:
    """Remove seals of folders that are gone, and what a crash left of writing one."""
    for path in (track_dir / SEALS).glob("*"):
        if path.name.startswith(".") or not (track_dir / path.stem).is_dir():
            path.unlink(missing_ok=True)


def _path(folder: Path) -> Path:
    return folder.parent / SEALS / f"{folder.name}.json"
