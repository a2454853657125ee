"""What lies in the ingest folder, and the two ways to read it: the door to walk, reading, archives and git.

A *tree* source is walked in the order of paths and read file by file, anywhere and at any time after:

    for found in walk(source, options): ...       # compare with what is known, cut into chunks
    with reader(source) as files:                 # later, in another process or on another host
        read = files.read(found)

A *stream* source, an archive, is read once from its beginning to its end:

    for found, data in stream(source, options): ...
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from services.processor.sources import archives, bare, git, reading
from services.processor.sources.ignore import PASSED_OVER
from services.processor.sources.options import SUFFIX, Options
from services.processor.sources.paths import printable
from services.processor.sources.walk import DirectoryWalk, Walk
from services.processor.values import Found, Rejection

LOOSE_FILES = "."  # the source of files that lie in the ingest folder itself


class Kind(StrEnum):
    DIRECTORY = "directory"
    GIT = "git"  # a working tree with its repository in .git
    BARE = "bare"  # a repository without a working tree: its HEAD is read
    ARCHIVE = "archive"
    LOOSE = "loose"


STREAMS = frozenset({Kind.ARCHIVE})
WITH_HISTORY = frozenset({Kind.GIT, Kind.BARE})


@dataclass(frozen=True, slots=True)
class Source:
    """A first-level entry of the ingest folder."""

    name: str  # as the file system spells it
    kind: Kind
    path: Path

    @property
    def printable(self) -> str:
        """The name as the database holds it."""
        return printable(self.name)


def find(ingest: Path) -> list[Source]:
    """The sources of the ingest folder in the order of their names, the loose files last.

    Names that begin with a dot are nobody's: half-finished copies, caches. Raises OSError when the
    folder cannot be listed.
    """
    found, loose = [], False
    with os.scandir(ingest) as entries:
        for entry in entries:
            if entry.name in PASSED_OVER or entry.name.startswith("."):
                continue
            kind = _kind(entry)
            if kind is not None:
                found.append(Source(entry.name, kind, ingest / entry.name))
            elif not entry.name.endswith(SUFFIX):
                loose = True
    found.sort(key=lambda source: source.name)
    return found + [Source(LOOSE_FILES, Kind.LOOSE, ingest)] * loose


def stamp(source: Source, options: Options) -> str | None:
    """While this text stays the same nothing in the source has changed; None: only a walk can tell.

    One stat of an archive, one look at HEAD of a bare repository. Raises OSError when it is gone.
    """
    if source.kind is Kind.ARCHIVE:
        status = source.path.lstat()
        return f"{status.st_size}-{status.st_mtime_ns}-{options.digest}"
    if source.kind is Kind.BARE:
        return f"{git.head(source.path) or 'empty'}-{options.digest}"
    return None


def walk(source: Source, options: Options) -> Walk:
    """The entries of a tree source by ascending path (code points): see `walk.Walk`."""
    if source.kind is Kind.BARE:
        return bare.TreeWalk(source.path, options)
    return DirectoryWalk(source.path, options, shallow=source.kind is Kind.LOOSE)


def reader(source: Source) -> reading.Reader:
    """Reads what a walk of this tree source found; a context manager. Raises OSError when it is gone."""
    if source.kind is Kind.BARE:
        return bare.BlobReader(source.path)
    return reading.FileReader(source.path, is_link_allowed=source.kind is Kind.LOOSE)


def stream(source: Source, options: Options) -> Iterator[tuple[Found, bytes | Rejection]]:
    """The members of an archive in its own order, each path once: see `archives.members`."""
    return archives.members(source.path, options)


def _kind(entry: os.DirEntry[str]) -> Kind | None:
    """What this entry is as a source; None for a loose file, a link or a special file."""
    try:
        if entry.is_file(follow_symlinks=False):
            return Kind.ARCHIVE if archives.is_archive(entry.name) else None
        if not entry.is_dir(follow_symlinks=False):
            return None
    except OSError:  # gone meanwhile
        return None
    if git.is_repository(Path(entry.path) / ".git"):
        return Kind.GIT
    return Kind.BARE if git.is_repository(Path(entry.path)) else Kind.DIRECTORY
