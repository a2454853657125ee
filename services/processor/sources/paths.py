"""Names as the database can hold them, and in an order both sides agree on."""

import hashlib
import os
import re
from typing import Any

import re2

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.stages.secret_patterns import TOKENS
from services.processor.values import Rejection

LONGEST_SUFFIX = 10  # characters of what tells a file's language, and no token
_RUN = re.compile("[0-9A-Za-z+=-]{10,}")  # every token has one, few names do: 0.3 µs instead of 4
_TOKEN = re2.compile("|".join(pattern for _, pattern in TOKENS))


def printable(name: str) -> str:
    r"""A file name as the database can hold it: bytes that are not UTF-8 become \xNN; without credentials."""
    return without_tokens(name) if name.isascii() else printable_bytes(os.fsencode(name))


def printable_bytes(name: bytes) -> str:
    """The same for a name as git and archives hold it; NUL, which no database text may hold, too."""
    return without_tokens(name.decode("utf-8", "backslashreplace").replace("\0", r"\x00"))


def without_tokens(name: str) -> str:
    """A name or path in which what has the format of a credential is replaced: names are shown everywhere.

    Two credentials are replaced by two things, so that two files stay two. A name without any stays itself.
    """
    if _RUN.search(name) is None:
        return name
    stem, dot, suffix = name.rpartition(".")
    if not stem or len(suffix) > LONGEST_SUFFIX:
        stem, dot, suffix = name, "", ""
    return str(_TOKEN.sub(_stand_in, stem)) + dot + suffix


def _stand_in(found: Any) -> str:
    return f"REDACTED_CREDENTIAL_{hashlib.sha256(found.group().encode()).hexdigest()[:8]}"


def fitting(path: str) -> str:
    """The path, or for one that fits no index entry its beginning and a digest of the whole.

    No directory with a longer path is entered, so the beginning always reaches into the last component:
    sorting each directory by these paths sorts the whole walk by them.
    """
    if is_short(path):
        return path
    encoded = path.encode()
    digest = hashlib.sha256(encoded).hexdigest()[:16]
    slash = "/" * path.endswith("/")
    return encoded[: thresholds.MAX_PATH_BYTES].decode("utf-8", "ignore") + "…" + digest + slash


def is_short(path: str) -> bool:
    size = len(path)
    if size * 4 <= thresholds.MAX_PATH_BYTES:  # a character has four bytes at most
        return True
    return size <= thresholds.MAX_PATH_BYTES and len(path.encode()) <= thresholds.MAX_PATH_BYTES


def too_long(path: str) -> Rejection | None:
    if is_short(path):
        return None
    return Rejection(Reason.PATH_TOO_LONG, f"more than {thresholds.MAX_PATH_BYTES} bytes")


def too_deep(depth: int) -> Rejection | None:
    if depth <= thresholds.MAX_DEPTH:
        return None
    return Rejection(Reason.TOO_DEEP, f"deeper than {thresholds.MAX_DEPTH} directories")
