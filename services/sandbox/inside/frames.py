"""Messages over a file descriptor: four bytes of length, then as much JSON."""

from __future__ import annotations

import _json
import posix

TYPE_CHECKING = False  # importing `typing`, `json` or `os` would double what a cage takes to start
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]
else:
    Message = dict

LARGEST = 8 << 20  # bytes of one message: what floods is refused when its length is read
READ = 1 << 16  # bytes at once


class FrameError(ValueError):
    """What came is no message; the other side sent something of its own."""


class OutOfTimeError(BaseException):
    """No whole message before the deadline. No `except Exception` of a test may take it."""


class Scanner:
    """What the json module's own scanner is told: as json.loads has it."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    memo: dict[str, str] = {}  # noqa: RUF012 (the scanner's own, of names of members)


_scan = _json.make_scanner(Scanner)  # type: ignore[arg-type]
# markers, default, encoder of strings, indent, separators; no sorting, no skipping, no NaN
_encode = _json.make_encoder(  # type: ignore[call-overload,unused-ignore]
    None,
    None,  # type: ignore[arg-type]
    _json.encode_basestring_ascii,
    None,
    ":",
    ",",
    False,
    False,
    False,
)


def dumps(value: object) -> str:
    """As json.dumps without spaces; raises ValueError for a float that is not finite."""
    return "".join(_encode(value, 0))


def loads(text: str) -> Any:
    """As json.loads; raises ValueError for what is no JSON, RecursionError for what is too deep."""
    try:
        value, end = _scan(text, 0)
    except StopIteration as exc:
        raise ValueError("no value") from exc
    if end != len(text):
        raise ValueError("more than one value")
    return value


def send(fd: int, message: Message) -> None:
    """Raises FrameError when the message is too large, OSError when nobody listens any more."""
    body = dumps(message).encode()
    if len(body) > LARGEST:
        raise FrameError(f"{len(body):,} bytes, at most {LARGEST:,} fit one message")
    left = memoryview(len(body).to_bytes(4, "big") + body)
    while left:
        left = left[posix.write(fd, left) :]


def receive(fd: int, deadline: float | None = None) -> Message | None:
    """The next message, None when the other side is gone; `deadline` by time.monotonic().

    Raises FrameError for what is no message, OutOfTimeError at the deadline.
    """
    head = _read(fd, 4, deadline)
    if head is None:
        return None
    length = int.from_bytes(head, "big")
    if length > LARGEST:
        raise FrameError(f"a message of {length:,} bytes, at most {LARGEST:,} are read")
    body = _read(fd, length, deadline)
    if body is None:
        return None
    try:
        message = loads(body.decode())
    except (ValueError, RecursionError) as exc:
        raise FrameError(f"no JSON: {exc}") from exc
    if type(message) is not dict:
        raise FrameError("not an object")
    return message


def _read(fd: int, wanted: int, deadline: float | None) -> bytes | None:
    parts: list[bytes] = []
    while wanted:
        if deadline is not None:
            _wait(fd, deadline)
        try:
            part = posix.read(fd, min(wanted, READ))
        except ConnectionError:
            return None
        if not part:
            return None
        parts.append(part)
        wanted -= len(part)
    return b"".join(parts)


def _wait(fd: int, deadline: float) -> None:
    """Until there is something to read."""
    import select
    import time

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):  # milliseconds
        raise OutOfTimeError
