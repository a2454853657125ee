"""Read the files of a directory source: everything in it is hostile, nothing is followed or run.

Each component of a path is opened relative to the one before with O_NOFOLLOW, so that a directory
swapped for a link since the walk leads nowhere; and a file is looked at again once it is open.
"""

import os
import stat
import time
from pathlib import Path
from typing import Protocol, Self

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.values import Found, Read, Rejection

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
CLOCK_TICK_NS = 20_000_000  # longest step of a file system's clock: a later write may carry the same mtime
VANISHED = Rejection(Reason.VANISHED, "gone before it was opened")


class Reader(Protocol):
    """Gives the bytes of what a walk found, at any time after it and in any process."""

    def read(self, found: Found) -> Read | Rejection:
        """Never blocks, and never raises for what it meets."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_exc: object) -> None: ...


class FileReader:
    """The files below one directory. Keeps the last directory open: chunks come in order of paths."""

    def __init__(self, root: Path, *, is_link_allowed: bool = False) -> None:
        flags = DIRECTORY_FLAGS & ~os.O_NOFOLLOW if is_link_allowed else DIRECTORY_FLAGS
        self._root = os.open(root, flags)
        self._directory = b""  # the one that is open
        self._descriptor = self._root

    def read(self, found: Found) -> Read | Rejection:
        try:
            raw = found.raw if found.raw is not None else found.path.encode()
            directory, _, name = raw.rpartition(b"/")
            return read_file(self._open(directory), name)
        except FileNotFoundError:
            return VANISHED
        except (OSError, ValueError) as exc:  # ValueError: a NUL or a lone surrogate in the name
            return Rejection(Reason.UNREADABLE, _said(exc))

    def _open(self, directory: bytes) -> int:
        if directory == self._directory:
            return self._descriptor
        self._leave()
        descriptor = open_below(self._root, directory)
        self._directory, self._descriptor = directory, descriptor
        return descriptor

    def _leave(self) -> None:
        if self._descriptor != self._root:
            os.close(self._descriptor)
        self._directory, self._descriptor = b"", self._root

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._leave()
        os.close(self._root)


def open_below(root: int, path: bytes) -> int:
    """A descriptor of the directory `path` below the open directory `root`, no link followed.

    Raises FileNotFoundError when it is gone, OSError when a component is no directory any more.
    """
    components = path.split(b"/") if path else [b"."]
    if b".." in components:
        raise NotADirectoryError(0, "leads out of the source")
    descriptor = root
    try:
        for name in components:
            below = os.open(name, DIRECTORY_FLAGS, dir_fd=descriptor)
            if descriptor != root:
                os.close(descriptor)
            descriptor = below
    except BaseException:
        if descriptor != root:
            os.close(descriptor)
        raise
    return descriptor


def read_file(  # noqa: PLR0911 — each return is one way to fail
    directory: int, name: bytes | str, max_bytes: int = thresholds.MAX_FILE_BYTES
) -> Read | Rejection:
    """The bytes of a regular file in an open directory, or why there are none. Never blocks."""
    try:
        descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
    except FileNotFoundError:
        return VANISHED
    except OSError as exc:
        return Rejection(Reason.UNREADABLE, _said(exc))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return Rejection(Reason.SPECIAL_FILE, stat.filemode(status.st_mode))
        if status.st_size > max_bytes:
            return too_large(status.st_size, max_bytes)
        _outlive_tick(status.st_mtime_ns)
        data = _read_all(descriptor, max_bytes)
    except OSError as exc:
        return Rejection(Reason.UNREADABLE, _said(exc))
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        return Rejection(Reason.TOO_LARGE, f"grew beyond {max_bytes} bytes while read")
    return Read(data, status.st_size, status.st_mtime_ns)


def too_large(size_bytes: int, max_bytes: int = thresholds.MAX_FILE_BYTES) -> Rejection:
    return Rejection(Reason.TOO_LARGE, f"{size_bytes} bytes, at most {max_bytes}")


def _read_all(descriptor: int, max_bytes: int) -> bytes:
    """To the end, or one byte beyond the most."""
    data = os.read(descriptor, max_bytes + 1)
    while data and len(data) <= max_bytes and (more := os.read(descriptor, max_bytes + 1 - len(data))):
        data += more
    return data


def _outlive_tick(mtime_ns: int) -> None:
    """Wait until a write after ours must show in the mtime: else that write would go unnoticed."""
    age = time.time_ns() - mtime_ns
    if 0 <= age < CLOCK_TICK_NS:
        time.sleep((CLOCK_TICK_NS - age) / 1e9)


def _said(exc: OSError | ValueError) -> str:
    return (exc.strerror if isinstance(exc, OSError) else None) or str(exc)
