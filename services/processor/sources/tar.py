"""Read a tar as a stream in constant memory, whatever its headers say.

The standard library's reader keeps every member, and reads pax headers, long names and the maps of
sparse files of any size into memory. Formats: tar(5) of libarchive; ustar, GNU and pax.
"""

from collections.abc import Iterator

from services.processor.reasons import Reason
from services.processor.sources.compression import BrokenArchiveError, Stream
from services.processor.sources.member import Load, Member
from services.processor.values import Rejection

BLOCK = 512
MAX_HEADER_BYTES = 1_000_000  # of a pax header or a long name
REGULAR = b"0\x007"  # 7: contiguous, which nobody tells apart
LINKS = {ord("1"): "hard link", ord("2"): "symbolic link"}
SPECIAL = {ord("3"): "character device", ord("4"): "block device", ord("6"): "FIFO"}
DIRECTORY, LONG_NAME, SPARSE = ord("5"), ord("L"), ord("S")
PAX = b"xX"  # X: of Solaris
OTHER_EXTENSIONS = b"gK"  # what holds for all members, and long targets of links: nothing we need
ZEROS = bytes(BLOCK)
SPARSE_MEMBER = Rejection(Reason.SPECIAL_FILE, "sparse member")


def members(stream: Stream) -> Iterator[tuple[Member, Load]]:
    """Every member and what loads its bytes, which works until the next one is asked for.

    Raises BrokenArchiveError, ArchiveTooLargeError.
    """
    extended: dict[bytes, bytes] = {}  # what the headers before a member say of it
    while header := _header(stream):
        kind, size = header[156], _number(header[124:136])
        if kind in PAX:
            extended |= _pax(_extension(stream, size))
        elif kind == LONG_NAME:
            extended[b"path"] = _extension(stream, size).rstrip(b"\0")
        elif kind in OTHER_EXTENSIONS:
            stream.skip(_padded(size))
        else:
            if kind == SPARSE and header[482]:
                while _block(stream)[504]:  # another piece of its map follows
                    pass
            member, size = _member(header, size, extended)
            data = _Data(stream, size)
            yield member, data.load
            data.leave()
            extended = {}


def _header(stream: Stream) -> bytes | None:
    """The next header; None at the end, which is a block of zeros or nothing."""
    block = stream.read(BLOCK)
    if not block or block == ZEROS:
        return None
    if len(block) < BLOCK:
        raise BrokenArchiveError("ends in the middle of a header")
    announced = _number(block[148:156])
    rest = block[:148] + block[156:]
    if announced != sum(rest) + 8 * 0x20 and announced != _signed_sum(rest) + 8 * 0x20:
        raise BrokenArchiveError("a header that is none: its checksum is wrong")
    return block


def _signed_sum(data: bytes) -> int:
    """Old tars added the bytes as signed ones."""
    return sum(data) - 256 * sum(byte > 0x7F for byte in data)


def _block(stream: Stream) -> bytes:
    block = stream.read(BLOCK)
    if len(block) < BLOCK:
        raise BrokenArchiveError("ends in the middle of a header")
    return block


def _number(field: bytes) -> int:
    """Octal digits, or base 256 where the first bit is set."""
    if field[0] & 0x80:
        value = int.from_bytes(field) & ((1 << 8 * len(field) - 1) - 1)
        if field[0] & 0x40 or value >= 1 << 62:  # negative, or beyond any disk
            raise BrokenArchiveError("a header that is none: an impossible number")
        return value
    digits = field.partition(b"\0")[0].strip()
    try:
        return int(digits or b"0", 8)
    except ValueError as exc:
        raise BrokenArchiveError("a header that is none: not a number") from exc


def _extension(stream: Stream, size: int) -> bytes:
    if size > MAX_HEADER_BYTES:
        raise BrokenArchiveError(f"a header of {size} bytes, at most {MAX_HEADER_BYTES}")
    data = stream.read(_padded(size))
    if len(data) < size:
        raise BrokenArchiveError("ends in the middle of a header")
    return data[:size]


def _pax(data: bytes) -> dict[bytes, bytes]:
    """The records of a pax header that matter here: `length keyword=value` and a line break each."""
    records = {}
    at = 0
    while at < len(data) and data[at]:
        digits, space, _ = data[at : at + 20].partition(b" ")
        if not space or not digits.isdigit() or int(digits) <= len(digits) + 1:
            raise BrokenArchiveError("a pax header that is none")
        key, equals, value = data[at + len(digits) + 1 : at + int(digits) - 1].partition(b"=")
        if equals and (key in (b"path", b"size") or key.startswith(b"GNU.sparse.")):
            records[key] = value
        at += int(digits)
    return records


def _member(header: bytes, size: int, extended: dict[bytes, bytes]) -> tuple[Member, int]:
    """The member this header begins, and how many bytes of data follow it."""
    kind = header[156]
    if b"size" in extended:
        if not extended[b"size"].isdigit() or len(extended[b"size"]) > 18:
            raise BrokenArchiveError("a pax header with an impossible size")
        size = int(extended[b"size"])
    name = extended.get(b"GNU.sparse.name") or extended.get(b"path") or _name(header)
    refused = None
    if kind in LINKS:
        refused, size = Rejection(Reason.SYMLINK, f"{LINKS[kind]}, not followed"), 0
    elif kind in SPECIAL:
        refused, size = Rejection(Reason.SPECIAL_FILE, SPECIAL[kind]), 0
    elif kind == SPARSE or any(key.startswith(b"GNU.sparse.") for key in extended):
        refused = SPARSE_MEMBER
    elif kind not in REGULAR and kind != DIRECTORY:
        refused = Rejection(Reason.SPECIAL_FILE, f"member of type {chr(kind)!r}")
    is_directory = kind == DIRECTORY or name.endswith(b"/")
    time = header[136:148]
    seconds = 0 if time[0] & 0x80 or not time.strip(b" \0").isdigit() else _number(time)
    return Member(name, size, seconds, is_directory, refused), 0 if is_directory else size


def _name(header: bytes) -> bytes:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0]
    if header[257:263] == b"ustar\0" and prefix:
        return prefix + b"/" + name
    return name


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


class _Data:
    """The bytes of the member the stream stands at."""

    def __init__(self, stream: Stream, size: int) -> None:
        self._stream = stream
        self._size = size
        self._left = _padded(size)

    def load(self) -> bytes:
        data = self._stream.read(self._left)
        if len(data) < self._size:
            raise BrokenArchiveError("ends in the middle of a member")
        self._left = 0
        return data[: self._size]

    def leave(self) -> None:
        if self._left:
            self._stream.skip(self._left)
