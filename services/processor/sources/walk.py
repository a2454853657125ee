"""Walk a directory source in the order of its paths, without opening a file but its ignore files.

Directories are opened relative to their parent's descriptor with O_NOFOLLOW, so that a directory
swapped for a link while we walk leads nowhere.

The order is that of the paths' code points, which is the byte order of their UTF-8 and PostgreSQL's
COLLATE "C": each directory is sorted by its entries' full paths, a directory's with a slash at its
end. That holds for names that are not UTF-8 (sorted as they are printed) and for paths cut to fit.
"""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.sources import ignore
from services.processor.sources.archives import is_archive
from services.processor.sources.ignore import IGNORE_FILES, PASSED_OVER, IgnoreRules, Scope, is_vendored
from services.processor.sources.options import SUFFIX, Options
from services.processor.sources.paths import fitting, is_short, printable, too_deep, too_long
from services.processor.sources.reading import DIRECTORY_FLAGS, read_file
from services.processor.values import Found, Read, Rejection

log = logging.getLogger(__name__)

MAX_DIRECTORIES = 8_192  # that are named for the watcher, which watches no more


class Walk(Protocol):
    """One pass over a tree source, by ascending path, each path once.

    Afterwards `directories` names those that were listed (paths of the file system, below the
    source, at most MAX_DIRECTORIES) and `unlisted` those that could not be (paths that end in a
    slash): of what lies below them nothing is known.
    """

    directories: list[str]
    unlisted: list[str]

    def __iter__(self) -> Iterator[Found]:
        """Raises OSError when the source itself cannot be opened or listed."""


class DirectoryWalk:
    """A walk over a directory; a shallow one lists the files in it and enters nothing."""

    def __init__(self, root: Path, options: Options, *, shallow: bool = False) -> None:
        self._root = root
        self._options = options
        self._shallow = shallow
        self._patterns_left = ignore.MAX_PATTERNS_OF_SOURCE
        self.directories: list[str] = []
        self.unlisted: list[str] = []

    def __iter__(self) -> Iterator[Found]:
        flags = DIRECTORY_FLAGS & ~os.O_NOFOLLOW if self._shallow else DIRECTORY_FLAGS
        root = os.open(self._root, flags)
        try:
            yield from self._entries(root, "", "", 0, None, _listed(root))
        finally:
            os.close(root)

    def _entries(
        self,
        parent: int,
        path: str,
        raw: str,
        depth: int,
        scope: Scope | None,
        entries: list[os.DirEntry[str]],
    ) -> Iterator[Found]:
        """What lies in the open directory `parent`, called `path` in the database and `raw` on disk."""
        if len(self.directories) < MAX_DIRECTORIES:
            self.directories.append(raw)
        if not self._shallow:
            scope = self._scope(parent, path, scope)
        before = None
        ordered = sorted(((self._key(path, entry), entry) for entry in entries), key=_first, reverse=True)
        entries.clear()  # an entry keeps its status: each is let go as soon as it is told
        while ordered:
            below, entry = ordered.pop()
            if below == before:
                log.warning("%s: two names look the same in print, the second is passed over", below)
                continue
            before = below
            if entry.name in PASSED_OVER:
                continue
            if below.endswith("/"):
                if not self._shallow:
                    yield from self._directory(parent, entry.name, below, raw, depth + 1, scope)
            elif not (self._shallow and _is_of_a_source(entry)):
                found = self._file(entry, path, below, raw, scope)
                if found is not None:
                    yield found

    def _key(self, path: str, entry: os.DirEntry[str]) -> str:
        """The path an entry has in the database, which is also what it is sorted by."""
        below = path + printable(entry.name) + "/" * _is_directory(entry)
        return below if is_short(below) else fitting(below)

    def _directory(
        self, parent: int, name: str, path: str, raw: str, depth: int, scope: Scope | None
    ) -> Iterator[Found]:
        refused = self._refuse_directory(name, path, depth, scope)
        if refused:
            yield Found(path, 0, 0, refused)  # its size and time say nothing of what is in it
            return
        try:
            descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError as exc:
            yield self._unlistable(path, exc)
            return
        try:
            try:
                entries = _listed(descriptor)
            except OSError as exc:
                yield self._unlistable(path, exc)
                return
            yield from self._entries(descriptor, path, f"{raw}{name}/", depth, scope, entries)
        finally:
            os.close(descriptor)

    def _refuse_directory(self, name: str, path: str, depth: int, scope: Scope | None) -> Rejection | None:
        if is_vendored(name):
            return Rejection(Reason.VENDORED, "directory")
        if scope is not None and scope.ignores(path):
            return Rejection(Reason.IGNORED, "directory")
        return too_deep(depth) or too_long(path) or self._options.refuse(path)

    def _unlistable(self, path: str, exc: OSError) -> Found:
        self.unlisted.append(path)
        return Found(path, 0, 0, Rejection(Reason.UNREADABLE, f"directory: {exc.strerror}"))

    def _file(
        self, entry: os.DirEntry[str], parent: str, path: str, raw: str, scope: Scope | None
    ) -> Found | None:
        spelt = parent + entry.name
        raw_path = (
            None if path == spelt and raw == parent and path.isascii() else _raw(raw + entry.name, path)
        )
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as exc:
            return Found(path, 0, 0, Rejection(Reason.UNREADABLE, exc.strerror or str(exc)), raw_path)
        refused = None
        if not stat.S_ISREG(status.st_mode):
            refused = _refuse_special(status.st_mode)
        elif scope is not None and scope.ignores(path):
            refused = Rejection(Reason.IGNORED, "file")
        elif raw_path is not None and len(raw_path) > thresholds.MAX_PATH_BYTES:
            refused = Rejection(Reason.PATH_TOO_LONG, f"{len(raw_path)} bytes")
        else:
            refused = self._options.refuse(path)
        return Found(path, status.st_size, status.st_mtime_ns, refused, raw_path)

    def _scope(self, directory: int, path: str, above: Scope | None) -> Scope | None:
        """The scope of a directory: its own ignore files, if it has any, before those above."""
        lines: list[str] = []
        for name in IGNORE_FILES:
            read = read_file(directory, name, ignore.MAX_IGNORE_BYTES)
            if isinstance(read, Read):
                lines += read.data.decode("utf-8", "replace").splitlines()
        if not lines:
            return above
        rules = IgnoreRules(lines, min(ignore.MAX_PATTERNS, self._patterns_left))
        self._patterns_left -= rules.cost
        return Scope(rules, len(path), above) if rules.size else above


def _listed(directory: int) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        return list(entries)


def _is_of_a_source(entry: os.DirEntry[str]) -> bool:
    """Whether an entry of the ingest folder is no loose file: hidden, an archive, or said of a source."""
    if entry.name.startswith(".") or entry.name.endswith(SUFFIX):
        return True
    return is_archive(entry.name) and entry.is_file(follow_symlinks=False)


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:  # only where the file system does not say it in the listing
        return False


def _first(pair: tuple[str, os.DirEntry[str]]) -> str:
    return pair[0]


def _raw(name: str, path: str) -> bytes | None:
    raw = os.fsencode(name)
    return None if raw == path.encode() else raw


def _refuse_special(mode: int) -> Rejection:
    if stat.S_ISLNK(mode):
        return Rejection(Reason.SYMLINK, "not followed")
    return Rejection(Reason.SPECIAL_FILE, stat.filemode(mode))
