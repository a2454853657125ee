"""Demonstration code: copies of packages that are installed here, for an ingest folder that is empty."""

import importlib.metadata
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from services.core.errors import StackError

# Written in Python alone, under licences that allow copies; the first ones that make up ENOUGH_FILES.
PACKAGES = (
    "flask",
    "werkzeug",
    "jinja2",
    "click",
    "httpx",
    "httpcore",
    "fsspec",
    "urllib3",
    "rich",
    "pydantic",
    "prometheus-client",
    "gunicorn",
    "networkx",
    "peft",
)
ENOUGH_FILES = 500
MOST_FILES = 120  # of one package, so that none is the demonstration
LICENCE = ("licen", "copying", "notice", "authors")  # how the names of licence files begin


@dataclass(frozen=True)
class Filled:
    files: int  # source files, licences not counted
    packages: tuple[str, ...]


@dataclass(frozen=True)
class Package:
    """One installed distribution: where each file lies, and its path in the ingest folder."""

    name: str
    sources: tuple[tuple[Path, PurePath], ...]
    licences: tuple[tuple[Path, PurePath], ...]


def fill_if_empty(ingest: Path, home: Path) -> Filled | None:
    """Fill an empty ingest folder, once in the life of this home; None when there was nothing to do.

    Raises StackError when the folder cannot be read or written.
    """
    marker = home / "demonstration"
    try:
        ingest.mkdir(parents=True, exist_ok=True)
        interrupted = marker.exists() and marker.read_text(encoding="ascii") == "begun\n"
        if not interrupted and (marker.exists() or not is_empty(ingest)):
            return None
        home.mkdir(parents=True, exist_ok=True)
        marker.write_text("begun\n", encoding="ascii")
        packages = choose(installed())
        for package in packages:
            _copy(package, ingest)
        marker.write_text("done\n", encoding="ascii")
    except OSError as exc:
        raise StackError(
            f"the ingest folder {ingest} cannot be used ({exc.strerror}: {exc.filename}):"
            " give this user access to it, or set INGEST_DIR to another folder"
        ) from exc
    return Filled(sum(len(package.sources) for package in packages), tuple(p.name for p in packages))


def is_empty(ingest: Path) -> bool:
    """Whether nothing lies there; hidden files (.gitkeep) are nothing."""
    return all(entry.name.startswith(".") for entry in os.scandir(ingest))


def choose(packages: Iterator[Package]) -> list[Package]:
    """The first packages that together have enough files; licences come along."""
    chosen: list[Package] = []
    files = 0
    for package in packages:
        if files >= ENOUGH_FILES:
            break
        if package.sources:
            chosen.append(package)
            files += len(package.sources)
    return chosen


def installed() -> Iterator[Package]:
    """Those of PACKAGES that this environment holds, in that order."""
    for name in PACKAGES:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        yield _package(name, distribution)


def _package(name: str, distribution: importlib.metadata.Distribution) -> Package:
    files = sorted(distribution.files or [])
    here = [(file, Path(str(distribution.locate_file(file)))) for file in files]
    sources = [(path, file) for file, path in here if _is_source(file) and path.is_file()]
    licences = [
        (path, PurePath(path.name))
        for file, path in here
        if file.name.lower().startswith(LICENCE) and ".dist-info" in file.parts[0] and path.is_file()
    ]
    return Package(name, tuple(sources[:MOST_FILES]), tuple(licences))


def _is_source(file: PurePath) -> bool:
    return file.suffix == ".py" and len(file.parts) > 1 and ".." not in file.parts


def _copy(package: Package, ingest: Path) -> None:
    """Copy a package aside and rename it, so that it is there whole or not at all."""
    unfinished, final = ingest / f".{package.name}.unfinished", ingest / package.name
    if final.exists():
        return
    shutil.rmtree(unfinished, ignore_errors=True)
    for source, below in (*package.licences, *package.sources):
        copy = unfinished / below
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    unfinished.rename(final)
