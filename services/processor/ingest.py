"""Walk a source and read its files: everything in it is hostile (nothing is followed or run).

Directories are opened relative to their parent's descriptor with O_NOFOLLOW, so that a directory
swapped for a link while we walk leads nowhere; a file is opened only if it was a regular one, and
looked at again once it is open.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from services.processor import thresholds
from services.processor.ignore import IGNORE_FILES, PASSED_OVER, IgnoreRules, is_vendored
from services.processor.reasons import Reason
from services.processor.values import Rejection

LOOSE_FILES = "."  # the source of files that lie in the ingest folder itself
DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CLOCK_TICK_NS = 20_000_000  # longest step of a file system's clock: a later write may carry the same mtime
MAX_IGNORE_BYTES = 64_000


@dataclass(frozen=True, slots=True)
class Found:
    """One entry of a source as the walk met it. Goes with this module; values.Found replaces it."""

    path: str  # below the source, always UTF-8; undecodable bytes as \xNN
    size_bytes: int
    mtime_ns: int
    name: str  # its last component, as the file system spells it
    directory: int  # descriptor of the directory it lies in, open until the next entry is asked for
    refused: Rejection | None = None  # by what it is, without opening it


def sources(ingest: Path) -> list[str]:
    """The first-level directories of the ingest folder, and LOOSE_FILES if files lie beside them.

    Names are as the file system spells them. Raises OSError when the folder cannot be listed.
    """
    names, loose = [], False
    with os.scandir(ingest) as entries:
        for entry in entries:
            if entry.name in PASSED_OVER:
                continue
            if entry.is_dir(follow_symlinks=False):
                names.append(entry.name)
            elif not entry.name.startswith("."):
                loose = True
    return sorted(names) + [LOOSE_FILES] * loose


def printable(name: str) -> str:
    r"""A file name as the database can hold it: bytes that are not UTF-8 become \xNN."""
    if name.isascii():
        return name
    return os.fsencode(name).decode("utf-8", "backslashreplace")


class Walk:
    """One pass over a source, in the order of names.

    Afterwards `directories` names all that were listed (paths of the file system, below the
    source) and `unlisted` those that could not be: of what lies below them nothing is known.
    """

    def __init__(self, ingest: Path, source: str) -> None:
        self._root = ingest / source
        self._shallow = source == LOOSE_FILES
        self._rules = IgnoreRules()
        self.directories: list[str] = []
        self.unlisted: list[str] = []

    def __iter__(self) -> Iterator[Found]:
        """Raises OSError when the source's own directory cannot be opened or listed."""
        flags = DIRECTORY_FLAGS & ~os.O_NOFOLLOW if self._shallow else DIRECTORY_FLAGS
        root = os.open(self._root, flags)
        try:
            if not self._shallow:
                self._rules = _ignore_rules(root)
            yield from self._entries(root, "", "", 0, _names(root))
        finally:
            os.close(root)

    def _entries(self, parent: int, path: str, raw: str, depth: int, names: list[str]) -> Iterator[Found]:
        """What lies in the open directory `parent`, called `path` in the database and `raw` on disk."""
        self.directories.append(raw)
        for name in names:
            below = path + printable(name)
            try:
                status = os.lstat(name, dir_fd=parent)
            except FileNotFoundError:
                continue
            except OSError as exc:
                yield _refused(parent, name, below, Reason.UNREADABLE, exc.strerror or str(exc))
                continue
            if stat.S_ISDIR(status.st_mode):
                if not self._shallow and name not in PASSED_OVER:
                    yield from self._directory(parent, name, below, f"{raw}{name}/", depth + 1)
            elif not (self._shallow and name.startswith(".")):
                yield self._file(parent, name, below, status)

    def _directory(self, parent: int, name: str, path: str, raw: str, depth: int) -> Iterator[Found]:
        refused = None
        if is_vendored(name):
            refused = Reason.VENDORED, "directory"
        elif depth > thresholds.MAX_DEPTH:
            refused = Reason.TOO_DEEP, f"deeper than {thresholds.MAX_DEPTH} directories"
        elif self._rules.ignores(path + "/"):
            refused = Reason.IGNORED, "directory"
        if refused:
            yield _refused(parent, name, path, *refused)
            return
        try:
            descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError as exc:
            self.unlisted.append(path + "/")
            yield _refused(parent, name, path, Reason.UNREADABLE, f"directory: {exc.strerror}")
            return
        try:
            try:
                names = _names(descriptor)
            except OSError as exc:
                self.unlisted.append(path + "/")
                yield _refused(parent, name, path, Reason.UNREADABLE, f"directory: {exc.strerror}")
                return
            yield from self._entries(descriptor, path + "/", raw, depth, names)
        finally:
            os.close(descriptor)

    def _file(self, parent: int, name: str, path: str, status: os.stat_result) -> Found:
        refused = None
        if stat.S_ISLNK(status.st_mode):
            refused = Rejection(Reason.SYMLINK, "not followed")
        elif not stat.S_ISREG(status.st_mode):
            refused = Rejection(Reason.SPECIAL_FILE, stat.filemode(status.st_mode))
        elif self._rules.ignores(path):
            refused = Rejection(Reason.IGNORED, "file")
        elif len(path.encode()) > thresholds.MAX_PATH_BYTES:
            refused = Rejection(Reason.PATH_TOO_LONG, f"{len(path.encode())} bytes")
        return Found(_fitting(path), status.st_size, status.st_mtime_ns, name, parent, refused)


def _names(directory: int) -> list[str]:
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries)


def _refused(parent: int, name: str, path: str, reason: Reason, detail: str) -> Found:
    """A refused directory: its size and time say nothing of what is in it, so they are left out."""
    return Found(_fitting(path), 0, 0, name, parent, Rejection(reason, detail))


def _fitting(path: str) -> str:
    """The path, or for one that fits no index entry its beginning and a digest of the rest."""
    encoded = path.encode()
    if len(encoded) <= thresholds.MAX_PATH_BYTES:
        return path
    digest = hashlib.sha256(encoded).hexdigest()[:16]
    return encoded[: thresholds.MAX_PATH_BYTES].decode("utf-8", "ignore") + "…" + digest


def _ignore_rules(root: int) -> IgnoreRules:
    lines: list[str] = []
    for name in IGNORE_FILES:
        data = read(root, name, MAX_IGNORE_BYTES)
        if isinstance(data, bytes):
            lines += data.decode("utf-8", "replace").splitlines()
    return IgnoreRules(lines)


def read(directory: int, name: str, max_bytes: int = thresholds.MAX_FILE_BYTES) -> bytes | Rejection:
    """The bytes of a regular file in an open directory, or why there are none. Never blocks."""
    try:
        descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
    except FileNotFoundError:
        return Rejection(Reason.VANISHED, "gone before it was opened")
    except OSError as exc:
        return Rejection(Reason.UNREADABLE, exc.strerror or str(exc))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return Rejection(Reason.SPECIAL_FILE, stat.filemode(status.st_mode))
        if status.st_size > max_bytes:
            return Rejection(Reason.TOO_LARGE, f"{status.st_size} bytes, at most {max_bytes}")
        _outlive_tick(status.st_mtime_ns)
        return _read_all(descriptor, max_bytes)
    except OSError as exc:
        return Rejection(Reason.UNREADABLE, exc.strerror or str(exc))
    finally:
        os.close(descriptor)


def _read_all(descriptor: int, max_bytes: int) -> bytes | Rejection:
    data = b""
    while chunk := os.read(descriptor, max_bytes + 1 - len(data)):
        data += chunk
        if len(data) > max_bytes:
            return Rejection(Reason.TOO_LARGE, f"grew beyond {max_bytes} bytes while read")
    return data


def _outlive_tick(mtime_ns: int) -> None:
    """Wait until a write after ours must show in the mtime: else that write would go unnoticed."""
    age = time.time_ns() - mtime_ns
    if 0 <= age < CLOCK_TICK_NS:
        time.sleep((CLOCK_TICK_NS - age) / 1e9)
