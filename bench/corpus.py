"""A corpus to measure ingestion on: real code that lies on any machine, laid out as an ingest folder.

By default the installed packages, the standard library and the sources of a few packages in several
languages, where pip can download them within a minute. Or whatever paths are given.
"""

import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from services.processor.sources import source
from services.processor.sources.ignore import is_vendored
from services.processor.sources.options import Options

DOWNLOAD_SECONDS = 60.0  # for all of them together, on the first run; later ones find the archives
# C, C++ and Python; TypeScript and Python; Rust and Python; Java, C++ and Python
POLYGLOT = ("grpcio==1.71.0", "bokeh==3.7.3", "libcst==1.7.0", "jpype1==1.5.2")
COMPILED = (".pyc", ".so", ".a", ".o")  # no sources
SEED = 20  # of the choice among more files than are wanted


@dataclass(frozen=True)
class Corpus:
    """A folder whose first-level directories are sources, and the files a walk finds in them."""

    folder: Path
    sources: tuple[str, ...]  # what each one is, for a person
    files: tuple[str, ...]  # below the folder, in the order of the walk
    bytes: int


def gather(paths: list[Path], most: int, folder: Path, downloads: Path) -> Corpus:
    """Lay out the code at these paths, or the default, in `folder`; of more than `most` files so many.

    Files are hard links where the file system allows, else copies. Directories that the processor
    would pass over as vendored get another name: what lies in site-packages is the corpus here. The
    downloaded sources are taken whole, and so is every file of the given paths as far as `most` goes.
    """
    shutil.rmtree(folder, ignore_errors=True)
    whole = [] if paths else _polyglot(downloads)
    roots = paths or [Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("stdlib"))]
    chosen = [(root, found) for root in whole for found in _files(root)]
    rest = [(root, found) for root in roots for found in _files(root)]
    if len(chosen) + len(rest) > most:
        random.Random(SEED).shuffle(rest)
        del rest[max(0, most - len(chosen)) :]
    for root, found in chosen + rest:
        _link(found, folder / f"{root.parent.name}-{root.name}" / _renamed(found.relative_to(root)))
    return lay_out(folder, tuple(root.name for root in whole + roots))


def lay_out(folder: Path, names: tuple[str, ...]) -> Corpus:
    """What a walk over the sources in this folder finds and does not refuse."""
    files, size = [], 0
    for found in source.find(folder):
        for entry in source.walk(found, Options()):
            if entry.refused is None:
                files.append(f"{found.name}/{entry.path}")
                size += entry.size_bytes
    return Corpus(folder, names, tuple(files), size)


def _files(root: Path) -> Iterator[Path]:
    """The files below a path that are no build products and no links, in a fixed order."""
    if root.is_file():
        yield root
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in ("__pycache__", ".git"))
        if root.name != "site-packages" and "site-packages" in names:
            names.remove("site-packages")  # below the standard library: taken on its own
        for name in sorted(files):
            path = Path(directory, name)
            if not name.endswith(COMPILED) and path.is_file() and not path.is_symlink():
                yield path


def _renamed(path: Path) -> Path:
    return Path(*(f"{part}_" if is_vendored(part) else part for part in path.parts)) if path.parts else path


def _link(found: Path, to: Path) -> None:
    to = to / found.name if to.name == "" else to
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(found, to)
    except OSError:  # another file system, or one without links
        shutil.copyfile(found, to)


def _polyglot(downloads: Path) -> list[Path]:
    """The unpacked sources of POLYGLOT, as many as pip finds in time."""
    downloads.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + DOWNLOAD_SECONDS
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    running = [
        subprocess.Popen(
            [*pip, "--timeout", "5", "--retries", "0", "--dest", str(downloads), wanted],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for wanted in POLYGLOT
        if not _archives(downloads, wanted)
    ]
    for process in running:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return [_unpacked(archive) for wanted in POLYGLOT for archive in _archives(downloads, wanted)]


def _archives(downloads: Path, wanted: str) -> list[Path]:
    return sorted(downloads.glob(f"{wanted.replace('==', '-')}.tar.gz"))


def _unpacked(archive: Path) -> Path:
    """The archive's one directory, unpacked beside it on the first run."""
    root = archive.with_name(archive.name.removesuffix(".tar.gz"))
    if not root.is_dir():
        passing = archive.with_name(f".{root.name}")
        with tarfile.open(archive) as packed:
            packed.extractall(passing, filter="data")
        (passing / root.name).rename(root)
    return root
