"""Expand a compressed file as a stream: forwards only, as far as asked for, within caps."""

import bz2
import lzma
import os
import zlib
from collections.abc import Callable
from typing import Protocol

from backports import zstd

CHUNK = 262_144
MAX_EXPANDED_BYTES = 4_000_000_000  # of an archive; the Linux tree has 1.5 GB
MAX_RATIO = 200  # expanded for each compressed byte; source code reaches 10, its most repetitive 100
UNMEASURED_BYTES = 50_000_000  # the ratio counts from here on
MAX_WINDOW_LOG = 27  # zstd's own default: 128 MB of memory
MAX_DICTIONARY_BYTES = 1 << 27  # of xz; `xz -9` needs 65 MB


class BrokenArchiveError(Exception):
    """The archive cannot be read from here on."""


class ArchiveTooLargeError(Exception):
    """The archive has more members, bytes or expansion than one may have."""


class Decompressor(Protocol):
    """What bz2, lzma and zstd give alike."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class Inflate:
    """zlib with the manners of the other decompressors."""

    def __init__(self, window_bits: int) -> None:
        self._zlib = zlib.decompressobj(window_bits)
        self._held = b""  # input beyond what was asked for

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._held and not self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        expanded = self._zlib.decompress(self._held + data, max_length)
        self._held = self._zlib.unconsumed_tail
        return expanded


def _gzip() -> Decompressor:
    return Inflate(31)  # 15 bits of window and a gzip header


def _xz() -> Decompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_DICTIONARY_BYTES)


def _zstd() -> Decompressor:
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: MAX_WINDOW_LOG})


DECOMPRESSORS: dict[str, Callable[[], Decompressor]] = {
    ".gz": _gzip,
    ".bz2": bz2.BZ2Decompressor,
    ".xz": _xz,
    ".zst": _zstd,
}
DAMAGES = (zlib.error, lzma.LZMAError, zstd.ZstdError, OSError, EOFError, ValueError)


class Budget:
    """What may still be expanded of an archive."""

    def __init__(self) -> None:
        self._expanded = 0

    def spend(self, expanded: int, compressed: int) -> None:
        """Count bytes that were expanded, `compressed` being all there was to expand from so far."""
        self._expanded += expanded
        if self._expanded > MAX_EXPANDED_BYTES:
            raise ArchiveTooLargeError(f"expands to more than {MAX_EXPANDED_BYTES} bytes")
        if self._expanded > UNMEASURED_BYTES and self._expanded > MAX_RATIO * compressed:
            raise ArchiveTooLargeError(
                f"expands {self._expanded // max(1, compressed)}-fold, at most {MAX_RATIO}"
            )


class Stream:
    """A file from its beginning to its end, expanded on the way; members of it may follow one another."""

    def __init__(self, descriptor: int, decompressor: Callable[[], Decompressor] | None) -> None:
        self._descriptor = descriptor
        self._new = decompressor
        self._decompressor = decompressor() if decompressor else None
        self._budget = Budget()
        self._compressed = 0  # bytes read from the file
        self._ready = b""
        self._at = 0  # in _ready
        self._is_at_end = False  # of the file

    def read(self, size: int) -> bytes:
        """So many bytes, fewer only at the end. Raises BrokenArchiveError, ArchiveTooLargeError."""
        if len(self._ready) - self._at >= size:
            data = self._ready[self._at : self._at + size]
            self._at += size
            return data
        parts = [self._ready[self._at :]]
        missing = size - len(parts[0])
        while missing > 0 and (more := self._more()):
            parts.append(more[:missing])
            self._ready, self._at = more, len(parts[-1])
            missing -= len(parts[-1])
        if missing > 0:
            self._ready, self._at = b"", 0
        return b"".join(parts)

    def skip(self, size: int) -> None:
        """Leave out so many bytes. Raises BrokenArchiveError when there are fewer."""
        ready = min(size, len(self._ready) - self._at)
        self._at += ready
        size -= ready
        if size and self._decompressor is None:
            end = os.fstat(self._descriptor).st_size
            if os.lseek(self._descriptor, 0, os.SEEK_CUR) + size > end:
                raise BrokenArchiveError("ends in the middle of a member")
            os.lseek(self._descriptor, size, os.SEEK_CUR)
            return
        while size > 0:
            got = len(self.read(min(size, CHUNK)))
            if not got:
                raise BrokenArchiveError("ends in the middle of a member")
            size -= got

    def _more(self) -> bytes:
        """The next bytes, none at the end."""
        try:
            expanded = self._expand() if self._decompressor is not None else os.read(self._descriptor, CHUNK)
        except DAMAGES as exc:
            raise BrokenArchiveError(f"damaged: {exc}") from exc
        return expanded

    def _expand(self) -> bytes:
        assert self._decompressor is not None
        assert self._new is not None
        while True:
            data = b""
            if self._decompressor.eof:  # another compressed stream may follow, zeros are padding
                data = self._decompressor.unused_data.lstrip(b"\0") or self._input().lstrip(b"\0")
                if not data:
                    if self._is_at_end:
                        return b""
                    continue
                self._decompressor = self._new()
            elif self._decompressor.needs_input:
                data = self._input()
                if not data:
                    raise EOFError("ends too early")
            expanded = self._decompressor.decompress(data, CHUNK)
            self._budget.spend(len(expanded), self._compressed)
            if expanded:
                return expanded

    def _input(self) -> bytes:
        data = os.read(self._descriptor, CHUNK)
        self._compressed += len(data)
        self._is_at_end = not data
        return data
