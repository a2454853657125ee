"""Read an archive as a stream of files: hostile, never unpacked, each member within caps."""

import logging
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.sources import tar
from services.processor.sources.compression import (
    DECOMPRESSORS,
    ArchiveTooLargeError,
    BrokenArchiveError,
    Stream,
)
from services.processor.sources.ignore import PASSED_OVER, is_vendored
from services.processor.sources.member import Load, Member
from services.processor.sources.options import Options
from services.processor.sources.paths import fitting, printable_bytes, too_long
from services.processor.sources.reading import FILE_FLAGS, too_large
from services.processor.sources.zip import ZipFile
from services.processor.values import Found, Rejection

log = logging.getLogger(__name__)

ITSELF = "."  # the path, within its source, of the archive as a whole
MAX_MEMBERS = 200_000
LAST_SECOND = 9_223_372_036  # that fits 63 bits as nanoseconds: the year 2262
ZIPS = (".zip", ".whl")
TARS = {
    ".tar": "", ".tar.gz": ".gz", ".tgz": ".gz", ".crate": ".gz", ".tar.bz2": ".bz2", ".tbz2": ".bz2",
    ".tbz": ".bz2", ".tar.xz": ".xz", ".txz": ".xz", ".tar.zst": ".zst", ".tzst": ".zst",
}  # fmt: skip
DRIVE = re.compile(r"[A-Za-z]:")


def is_archive(name: str) -> bool:
    return name.lower().endswith((*ZIPS, *TARS, *DECOMPRESSORS))


def members(path: Path, options: Options) -> Iterator[tuple[Found, bytes | Rejection]]:
    """What is in the archive at `path`, in its own order; of several members of one path the first.

    Directories and what PASSED_OVER names get no row; a vendored directory gets one, like a
    directory that is too deep. Archives inside are not entered: their names say that they are
    binary. An archive that breaks, or is more than one may be, ends with a row of path ITSELF that
    says so; what came before stands. Ignore files inside do not count: a stream meets them too
    late. Raises OSError when the archive itself cannot be opened.
    """
    descriptor = os.open(path, FILE_FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "no longer a regular file", str(path))
        itself = Found(ITSELF, status.st_size, status.st_mtime_ns)
        try:
            yield from _Selection(options).of(_opened(path.name, descriptor))
        except BrokenArchiveError as exc:
            yield itself, Rejection(Reason.ARCHIVE_BROKEN, str(exc)[:300])
        except ArchiveTooLargeError as exc:
            yield itself, Rejection(Reason.ARCHIVE_TOO_LARGE, str(exc)[:300])
        except OSError as exc:
            yield itself, Rejection(Reason.UNREADABLE, exc.strerror or str(exc))
    finally:
        os.close(descriptor)


def _opened(name: str, descriptor: int) -> Iterator[tuple[Member, Load]]:
    """The members of the archive with this name: its suffix says how it is read."""
    lower = name.lower()
    if lower.endswith(ZIPS):
        return ZipFile(descriptor).members()
    for suffix in sorted(TARS, key=len, reverse=True):
        if lower.endswith(suffix):
            return tar.members(Stream(descriptor, DECOMPRESSORS.get(TARS[suffix])))
    stem, _, suffix = name.rpartition(".")
    return _single(os.fsencode(stem), Stream(descriptor, DECOMPRESSORS[f".{suffix.lower()}"]))


def _single(name: bytes, stream: Stream) -> Iterator[tuple[Member, Load]]:
    """A compressed file that is no tar: one member, as large as is read of it."""
    data = stream.read(thresholds.MAX_FILE_BYTES + 1)
    yield Member(name, len(data), 0, is_directory=False, refused=None), lambda: data


class _Selection:
    """Which members are worth loading, and why the others are not."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._met: set[int] = set()  # hashes of the paths that have a row

    def of(self, members: Iterator[tuple[Member, Load]]) -> Iterator[tuple[Found, bytes | Rejection]]:
        for number, (member, load) in enumerate(members, 1):
            if number > MAX_MEMBERS:
                raise ArchiveTooLargeError(f"has more than {MAX_MEMBERS} members")
            if member.is_directory:
                continue
            path, refused = _place(member)
            if path is None or not self._is_new(path):
                continue
            time = max(0, min(member.time, LAST_SECOND))
            refused = refused or member.refused or self._refuse(member, path)
            found = Found(path, min(member.size, 1 << 62), time * 1_000_000_000, refused)
            yield found, refused if refused is not None else load()

    def _is_new(self, path: str) -> bool:
        before = len(self._met)
        self._met.add(hash(path))
        return len(self._met) > before

    def _refuse(self, member: Member, path: str) -> Rejection | None:
        if refused := too_long(path) or self._options.refuse(path):
            return refused
        return too_large(member.size) if member.size > thresholds.MAX_FILE_BYTES else None


def _place(member: Member) -> tuple[str | None, Rejection | None]:
    """The path of a member, or of a directory that is refused with all below; None: no row."""
    name = printable_bytes(member.name)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or not PASSED_OVER.isdisjoint(parts):
        return None, None
    if name.startswith("/") or ".." in parts or DRIVE.match(parts[0]):
        return fitting(name), Rejection(Reason.ARCHIVE_PATH, "leads out of the archive")
    for depth, part in enumerate(parts[:-1], 1):
        if is_vendored(part):
            return fitting("/".join(parts[:depth]) + "/"), Rejection(Reason.VENDORED, "directory")
        if depth > thresholds.MAX_DEPTH:
            too_deep = Rejection(Reason.TOO_DEEP, f"deeper than {thresholds.MAX_DEPTH} directories")
            return fitting("/".join(parts[:depth]) + "/"), too_deep
    return fitting("/".join(parts)), None
