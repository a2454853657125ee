"""Read objects out of git's packs by offset: every size is checked before it is spent, nothing is mapped.

A mapped pack that is cut short meanwhile kills the process with SIGBUS; dulwich's reader inflates
before it knows how much. Format: gitformat-pack(5).
"""

import os
import stat
import struct
import zlib
from collections import OrderedDict
from typing import NamedTuple

from dulwich.errors import ApplyDeltaError
from dulwich.pack import apply_delta

from services.processor.sources.reading import FILE_FLAGS

MAX_OBJECT_BYTES = 16_000_000  # of any object: a folder of 100,000 files is a tree of 4 MB
MAX_DELTAS = 512  # in a chain; git makes 50
MAX_CHAIN_BYTES = 128_000_000  # of all deltas and results on the way to one object
CACHE_BYTES = 32_000_000  # of bases that other objects build on; git keeps 96 MB
CHUNK = 16_384
KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
OFFSET_DELTA, REFERENCE_DELTA = 6, 7


class ObjectError(Exception):
    """An object cannot be had: missing, damaged, or made to be harmful."""


class TooLargeError(ObjectError):
    """An object has more bytes than may be read."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"{size_bytes} bytes")
        self.size_bytes = size_bytes


class GitObject(NamedTuple):
    kind: bytes  # commit, tree, blob, tag
    data: bytes


class Entry(NamedTuple):
    """An object as it lies in a pack."""

    type: int
    size: int  # bytes, inflated; of the delta, where it is one
    data_offset: int  # where the deflated bytes begin
    base_offset: int  # of an OFFSET_DELTA
    base_id: bytes  # of a REFERENCE_DELTA


class Inflater:
    """Inflates a zlib stream that begins at an offset of a file, never more than asked for."""

    def __init__(self, descriptor: int, offset: int) -> None:
        self._descriptor = descriptor
        self._offset = offset
        self._zlib = zlib.decompressobj()
        self._ready = b""

    def start(self, most: int) -> bytes:
        """The first bytes, at most so many; fewer only where the stream ends."""
        return self._inflate(most)

    def push_back(self, data: bytes) -> None:
        self._ready = data

    def rest(self, size: int) -> bytes:
        """Exactly the `size` bytes that are to come. Raises ObjectError if there are fewer or more."""
        data = self._ready + self._inflate(size + 1 - len(self._ready))
        if len(data) != size:
            raise ObjectError(f"damaged: {size} bytes announced")
        return data

    def _inflate(self, most: int) -> bytes:
        parts: list[bytes] = []
        while most > 0 and not self._zlib.eof:
            deflated = self._zlib.unconsumed_tail or os.pread(self._descriptor, CHUNK, self._offset)
            if not self._zlib.unconsumed_tail:
                self._offset += len(deflated)
            if not deflated:
                break
            try:
                parts.append(self._zlib.decompress(deflated, most))
            except zlib.error as exc:
                raise ObjectError(f"damaged: {exc}") from exc
            most -= len(parts[-1])
        return b"".join(parts)


class Pack:
    """A pack and its index, version 2, read by offset."""

    def __init__(self, directory: int, name: str) -> None:
        """Raises OSError or ObjectError when it is none that can be read."""
        self._index = open_regular(directory, f"{name}.idx")
        try:
            self._pack = open_regular(directory, f"{name}.pack")
        except OSError:
            os.close(self._index)
            raise
        head = os.pread(self._index, 8 + 1024, 0)
        if len(head) != 8 + 1024 or head[:8] != b"\xfftOc\0\0\0\2":
            self.close()
            raise ObjectError(f"{name}.idx: not an index of version 2")
        self._fan_out = struct.unpack(">256I", head[8:])  # objects up to each first byte of an id
        self._count = self._fan_out[255]
        self._bases: OrderedDict[int, GitObject] = OrderedDict()
        self._bases_bytes = 0

    def close(self) -> None:
        os.close(self._index)
        os.close(self._pack)

    def offset(self, object_id: bytes) -> int | None:
        """Where in the pack the object lies; None when it does not."""
        first = object_id[0]
        low, high = self._fan_out[first - 1] if first else 0, self._fan_out[first]
        names = 8 + 1024
        while (high - low) * 20 > CHUNK:
            middle = (low + high) // 2
            if os.pread(self._index, 20, names + middle * 20) <= object_id:
                low = middle
            else:
                high = middle
        ids = os.pread(self._index, max(0, high - low) * 20, names + low * 20)
        at = ids.find(object_id)
        while at > 0 and at % 20:
            at = ids.find(object_id, at + 1)
        return self._offset_of(low + at // 20) if at >= 0 else None

    def _offset_of(self, number: int) -> int | None:
        table = 8 + 1024 + self._count * 24  # behind the ids and their checksums
        raw = os.pread(self._index, 4, table + number * 4)
        offset = int.from_bytes(raw) if len(raw) == 4 else -1
        if offset & 0x80000000 and offset >= 0:
            raw = os.pread(self._index, 8, table + self._count * 4 + (offset & 0x7FFFFFFF) * 8)
            offset = int.from_bytes(raw) if len(raw) == 8 else -1
        return offset if 0 <= offset < 1 << 62 else None

    def size(self, offset: int) -> int:
        entry = self._entry(offset)
        if entry.type in KINDS:
            return entry.size
        sizes = Inflater(self._pack, entry.data_offset).start(20)  # of the base, of the result
        _, at = _varint(sizes, 0)
        return _varint(sizes, at)[0]

    def read(self, offset: int, max_bytes: int) -> GitObject:
        """The object at this offset, its chain of deltas applied. Raises ObjectError."""
        deltas: list[tuple[int, bytes]] = []
        spent = 0  # bytes
        base = self._bases.get(offset)
        while base is None:
            entry = self._entry(offset)
            spent += entry.size
            if entry.size > MAX_OBJECT_BYTES or (
                not deltas and entry.type in KINDS and entry.size > max_bytes
            ):
                raise TooLargeError(entry.size)
            if len(deltas) > MAX_DELTAS or spent > MAX_CHAIN_BYTES:
                raise ObjectError("a chain of deltas without end")
            data = Inflater(self._pack, entry.data_offset).rest(entry.size)
            if entry.type in KINDS:
                base = GitObject(KINDS[entry.type], data)
                self._remember(offset, base)
                break
            deltas.append((offset, data))
            offset = self._base_of(entry)
            base = self._bases.get(offset)
        for number, (at, delta) in enumerate(reversed(deltas), 1):
            most = max_bytes if number == len(deltas) else MAX_OBJECT_BYTES
            base = GitObject(base.kind, _patched(base.data, delta, most))
            spent += len(base.data)
            if spent > MAX_CHAIN_BYTES:
                raise ObjectError("a chain of deltas that grows too large")
            self._remember(at, base)
        if len(base.data) > max_bytes:
            raise TooLargeError(len(base.data))
        return base

    def _base_of(self, entry: Entry) -> int:
        if entry.type == OFFSET_DELTA:
            return entry.base_offset
        offset = self.offset(entry.base_id)  # packs on disk are complete: git never leaves a base outside
        if offset is None:
            raise ObjectError(f"the base {entry.base_id.hex()} is missing")
        return offset

    def _entry(self, offset: int) -> Entry:
        head = os.pread(self._pack, 64, offset)
        try:
            byte, at = head[0], 1
            kind, size, shift = byte >> 4 & 7, byte & 15, 4
            while byte & 0x80 and shift < 60:
                byte = head[at]
                size |= (byte & 0x7F) << shift
                at, shift = at + 1, shift + 7
            if kind == REFERENCE_DELTA:
                return Entry(kind, size, offset + at + 20, 0, head[at : at + 20])
            if kind != OFFSET_DELTA:
                if kind not in KINDS:
                    raise ObjectError(f"damaged: type {kind} at {offset}")
                return Entry(kind, size, offset + at, 0, b"")
            back = head[at] & 0x7F
            while head[at] & 0x80:
                at += 1
                back = (back + 1) << 7 | head[at] & 0x7F
        except IndexError as exc:
            raise ObjectError(f"damaged: the pack ends before {offset}") from exc
        if not 0 < back <= offset:  # a base always lies before: no loop
            raise ObjectError(f"damaged: a base outside the pack at {offset}")
        return Entry(kind, size, offset + at + 1, offset - back, b"")

    def _remember(self, offset: int, base: GitObject) -> None:
        if len(base.data) > CACHE_BYTES // 16:
            return
        self._bases[offset] = base
        self._bases_bytes += len(base.data)
        while self._bases_bytes > CACHE_BYTES:
            self._bases_bytes -= len(self._bases.popitem(last=False)[1].data)


def _patched(base: bytes, delta: bytes, max_bytes: int) -> bytes:
    """A delta applied to its base. Its size is checked first; dulwich never writes beyond it."""
    announced, at = _varint(delta, 0)
    size = _varint(delta, at)[0]
    if size > max_bytes:
        raise TooLargeError(size)
    if announced != len(base):
        raise ObjectError("damaged: a delta of another base")
    try:
        return b"".join(apply_delta(base, delta))
    except (ApplyDeltaError, ValueError, IndexError, OverflowError) as exc:
        raise ObjectError(f"damaged: {exc}") from exc


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A little-endian number of seven bits a byte, and where the next begins."""
    value = shift = 0
    while at < len(data) and shift < 60:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at
    raise ObjectError("damaged: a size without end")


def open_regular(directory: int, name: str) -> int:
    descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{name} is not a regular file")
    return descriptor
