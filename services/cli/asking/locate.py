"""From what a person types to a file of a source, or to a file of one's own."""

import os
from dataclasses import dataclass
from pathlib import Path

from services.core.errors import RatchetError
from services.processor.sources import archives, source
from services.processor.sources.paths import printable
from services.processor.sources.source import Kind, Source


class PathError(RatchetError, ValueError):
    """A path that names nothing, or something that is no file."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is, or was."""

    source: Source | None  # None: of a source that is not there now, or of none
    name: str | None  # of the source in the database; None: nothing the database could know
    path: str  # below the source, as the database spells it, a directory's with a slash; outside: a name
    file: Path | None = None  # outside of any source

    @property
    def shown(self) -> str:
        return f"{self.name}/{self.path}" if self.name not in (None, source.LOOSE_FILES) else self.path


def locate(asked: str, ingest: Path, here: Path) -> Place:
    """The place of `source/path` in the ingest folder, else of a path from `here`.

    A path that begins with `/`, `./` or `../` is never taken for one in the ingest folder, though it
    may lead there. Raises PathError when it names a source.
    """
    sources = _sources(ingest)
    if not asked.startswith(("/", "./", "../")) and (place := _in_ingest(asked, sources)):
        return place
    absolute = Path(os.path.abspath(here / asked))
    for path, folder in ((absolute, ingest), (absolute.resolve(), ingest.resolve())):
        if folder in path.parents:
            below = str(path.relative_to(folder))
            return _in_ingest(below, sources) or _gone(below)
    if absolute.is_dir():
        raise PathError(f"{asked} is a directory: name a file in it")
    if absolute.is_file() and not archives.is_archive(absolute.name):
        real = absolute.resolve()
        return Place(None, None, printable(real.name), real)
    for archive in (absolute, *absolute.parents):
        if archives.is_archive(archive.name) and archive.is_file():
            found = Source(archive.name, Kind.ARCHIVE, archive)
            return Place(found, None, _member(found, str(absolute.relative_to(archive))))
    return _gone(asked)


def _sources(ingest: Path) -> dict[str, Source]:
    """By name, as the file system and as the database spells it; none when there is no such folder."""
    try:
        found = source.find(ingest)
    except OSError:
        return {}
    return {each.printable: each for each in found} | {each.name: each for each in found}


def _in_ingest(path: str, sources: dict[str, Source]) -> Place | None:
    name, _, below = os.path.normpath(path).partition("/")
    found = sources.get(name)
    if found is not None and name != source.LOOSE_FILES:
        return Place(found, found.printable, _member(found, below or "."))
    loose = sources.get(source.LOOSE_FILES)
    if loose is not None and not below and os.path.lexists(loose.path / name):
        return Place(loose, source.LOOSE_FILES, printable(name))
    return None


def _member(found: Source, below: str) -> str:
    if below == ".":
        raise PathError(
            f"{found.printable} is a source ({found.kind}): name a file in it, "
            f"or see `ratchet stats --source {found.printable}`"
        )
    on_disk = found.path / below
    is_directory = found.kind in (Kind.DIRECTORY, Kind.GIT) and on_disk.is_dir() and not on_disk.is_symlink()
    return printable(below) + "/" * is_directory


def _gone(asked: str) -> Place:
    """Nothing is there: perhaps the database remembers it."""
    name, _, below = asked.partition("/")
    return Place(None, printable(name), printable(below)) if below else Place(None, ".", printable(name))
