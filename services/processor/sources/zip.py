"""Read a zip member by member in constant memory, whatever its directory says.

The standard library's reader loads the whole directory first, and its treatment of overlapping
members differs between Python 3.11 and 3.12. Here overlap needs no rule of its own: what is expanded
counts against the bytes of the file on disk, however often they are used. Format: APPNOTE.TXT 6.3.
"""

import bz2
import datetime
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from services.processor.reasons import Reason
from services.processor.sources.compression import (
    DAMAGES,
    DECOMPRESSORS,
    BrokenArchiveError,
    Budget,
    Decompressor,
    Inflate,
)
from services.processor.sources.member import Load, Member
from services.processor.values import Rejection

END = struct.Struct("<4s4H2LH")
END_64_LOCATOR = struct.Struct("<4sLQL")
END_64 = struct.Struct("<4sQ2H2L4Q")
ENTRY = struct.Struct("<4s4B4HL2L5H2L")
LOCAL = struct.Struct("<4s2B4HL2L2H")
MAX_COMMENT_BYTES = 65_535
CHUNK = 1_048_576
MAX_ENTRY_BYTES = ENTRY.size + 3 * 65_535  # with the longest name, extra field and comment
STORED, DEFLATED, BZIP2, ZSTD = 0, 8, 12, 93
ENCRYPTED = 0x2041  # bits 0, 6 and 13 of the flags
UTF8 = 0x0800
UNIX = 3  # the system whose file modes the upper half of the attributes holds
EPOCH = datetime.date(1970, 1, 1).toordinal()
DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)  # each month
ZIP64_EXTRA = 1


class Entry(NamedTuple):
    member: Member
    method: int
    crc: int
    compressed_bytes: int
    offset: int  # of its local header


class ZipFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._file_bytes = os.fstat(descriptor).st_size
        self._budget = Budget()

    def members(self) -> Iterator[tuple[Member, Load]]:
        """Every member of the directory and what loads its bytes.

        Raises BrokenArchiveError, ArchiveTooLargeError.
        """
        offset, size, shift = self._directory()
        end = offset + size
        buffer, at = b"", 0
        while offset < end or at < len(buffer):
            if len(buffer) - at < MAX_ENTRY_BYTES and offset < end:
                more = os.pread(self._descriptor, min(CHUNK, end - offset), offset)
                if not more:
                    raise BrokenArchiveError("ends in the middle of its directory")
                buffer, at, offset = buffer[at:] + more, 0, offset + len(more)
                continue
            entry, length = _entry(buffer, at)
            at += length
            yield entry.member, partial(self._load, entry, shift)

    def _directory(self) -> tuple[int, int, int]:
        """Where the directory begins, its size, and how far everything is shifted by what lies before."""
        start = max(0, self._file_bytes - END.size - MAX_COMMENT_BYTES)
        tail = os.pread(self._descriptor, END.size + MAX_COMMENT_BYTES, start)
        at = tail.rfind(b"PK\5\6")
        if at < 0 or len(tail) - at < END.size:
            raise BrokenArchiveError("no zip: its directory is missing")
        _, _, _, _, _, size, offset, _ = END.unpack_from(tail, at)
        end = start + at
        if 0xFFFFFFFF in (size, offset) or tail[max(0, at - 20) : at].startswith(b"PK\6\7"):
            size, offset, end = self._directory_64(end)
        shift = end - size - offset
        if shift < 0:
            raise BrokenArchiveError("its directory lies outside")
        return offset + shift, size, shift

    def _directory_64(self, end: int) -> tuple[int, int, int]:
        locator = os.pread(self._descriptor, END_64_LOCATOR.size, max(0, end - END_64_LOCATOR.size))
        if len(locator) < END_64_LOCATOR.size or not locator.startswith(b"PK\6\7"):
            raise BrokenArchiveError("its zip64 directory is missing")
        # It lies right before its locator; the offset there is wrong where something precedes the zip
        at = end - END_64_LOCATOR.size - END_64.size
        record = os.pread(self._descriptor, END_64.size, max(0, at))
        if at < 0 or not record.startswith(b"PK\6\6"):
            raise BrokenArchiveError("its zip64 directory is missing")
        size, offset = END_64.unpack(record)[-2:]
        return size, offset, at

    def _load(self, entry: Entry, shift: int) -> bytes:
        local = (
            os.pread(self._descriptor, LOCAL.size, entry.offset + shift) if entry.offset < 1 << 62 else b""
        )
        if len(local) < LOCAL.size or not local.startswith(b"PK\3\4"):
            raise BrokenArchiveError("a member that is not where its directory says")
        at = entry.offset + shift + LOCAL.size + sum(LOCAL.unpack(local)[-2:])
        size = entry.member.size
        try:
            data = self._expand(entry, at)
        except DAMAGES as exc:
            raise BrokenArchiveError(f"a damaged member: {exc}") from exc
        if len(data) != size or zlib.crc32(data) != entry.crc:
            raise BrokenArchiveError("a damaged member: other bytes than its directory announces")
        self._budget.spend(size, self._file_bytes)
        return data

    def _expand(self, entry: Entry, at: int) -> bytes:
        """What the member holds; one byte more than announced where there is more."""
        most, left = entry.member.size + 1, entry.compressed_bytes
        decompressor = _decompressor(entry.method)
        if decompressor is None:
            return os.pread(self._descriptor, min(most, left), at)
        expanded: list[bytes] = []
        while most > 0 and not decompressor.eof:
            data = b""
            if decompressor.needs_input:
                data = os.pread(self._descriptor, min(CHUNK, left), at)
                at, left = at + len(data), left - len(data)
                if not data:
                    break
            expanded.append(decompressor.decompress(data, most))
            most -= len(expanded[-1])
        return b"".join(expanded)


def _decompressor(method: int) -> Decompressor | None:
    if method == STORED:
        return None
    if method == DEFLATED:
        return Inflate(-15)
    if method == BZIP2:
        return bz2.BZ2Decompressor()
    if method == ZSTD:
        return DECOMPRESSORS[".zst"]()
    raise BrokenArchiveError(f"compression method {method} is not supported")


def _entry(buffer: bytes, at: int) -> tuple[Entry, int]:
    """The entry of the directory at this place of the buffer, and how long it is."""
    if len(buffer) - at < ENTRY.size or not buffer.startswith(b"PK\1\2", at):
        raise BrokenArchiveError("its directory is damaged")
    (_, _, system, _, _, flags, method, clock, date, crc, compressed, size, name_length, extra_length,
     comment_length, _, _, attributes, offset) = ENTRY.unpack_from(buffer, at)  # fmt: skip
    length = ENTRY.size + name_length + extra_length + comment_length
    if length > len(buffer) - at:
        raise BrokenArchiveError("its directory is damaged")
    at += ENTRY.size
    name = buffer[at : at + name_length]
    extra = buffer[at + name_length : at + name_length + extra_length]
    size, compressed, offset = _wide(extra, size, compressed, offset)
    name = _spelt(name, flags)
    mode = attributes >> 16 if system == UNIX else 0
    member = Member(name, size, _seconds(date, clock), name.endswith(b"/"), _refuse(flags, mode, method))
    return Entry(member, method, crc, compressed, offset), length


def _wide(extra: bytes, size: int, compressed: int, offset: int) -> tuple[int, int, int]:
    """The three numbers, those that do not fit 32 bits from the zip64 extra field."""
    while len(extra) >= 4:
        tag, length = struct.unpack_from("<2H", extra)
        if tag == ZIP64_EXTRA:
            count = min(length, len(extra) - 4, 24) // 8
            wide = iter(struct.unpack_from(f"<{count}Q", extra, 4))
            size, compressed, offset = (
                next(wide, number) if number == 0xFFFFFFFF else number
                for number in (size, compressed, offset)
            )
            break
        extra = extra[4 + length :]
    return size, compressed, offset


def _spelt(name: bytes, flags: int) -> bytes:
    """The name in UTF-8 where it is marked so or happens to be, else from code page 437; / throughout."""
    try:
        name.decode()
    except UnicodeDecodeError:
        if not flags & UTF8:
            name = name.decode("cp437").encode()
    return name.replace(b"\\", b"/")


def _refuse(flags: int, mode: int, method: int) -> Rejection | None:
    if flags & ENCRYPTED:
        return Rejection(Reason.ARCHIVE_ENCRYPTED, "needs a password")
    if stat.S_ISLNK(mode):
        return Rejection(Reason.SYMLINK, "symbolic link, not followed")
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return Rejection(Reason.SPECIAL_FILE, stat.filemode(mode))
    if method not in (STORED, DEFLATED, BZIP2, ZSTD):
        return Rejection(Reason.UNREADABLE, f"compression method {method} is not supported")
    return None


def _seconds(date: int, clock: int) -> int:
    """Seconds since 1970 of a DOS date, to the day: leap days and time zones are left out."""
    day = datetime.date(1980 + (date >> 9), 1, 1).toordinal() - EPOCH
    day += DAYS_BEFORE[min(max(date >> 5 & 15, 1), 12) - 1] + max(date & 31, 1) - 1
    return day * 86_400 + (clock >> 11) * 3_600 + (clock >> 5 & 63) * 60 + (clock & 31) * 2
