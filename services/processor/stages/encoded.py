"""Runs of encoded data: base64, hexadecimal pairs, Unicode escapes (StarCoder2, arXiv 2402.19173 §2)."""

import re
import string

import numpy as np
from numpy.typing import NDArray

from services.processor import thresholds

BASE64 = frozenset((string.ascii_letters + string.digits + "+/=\n").encode())
CLASSES = bytes(0x78 if byte in BASE64 else 0x20 for byte in range(256))  # x where base64 may be
IN_A_LINE = CLASSES[:10] + b" " + CLASSES[11:]
EIGHT = np.frombuffer(b"x" * 8, np.uint64)[0]
HEX_PAIRS = re.compile(rb"(?:(?:0x|\\x)[0-9a-fA-F]{2}(?:,\s{0,40}+|\b\s{0,40}+)){8,}+")
UNICODE_ESCAPES = re.compile(rb"(?:\\u[0-9a-fA-F]{4}){8,}+")


def runs(data: bytes, array: NDArray[np.uint8]) -> tuple[int, int]:
    """Bytes of the longest run, and of all; `array` is a view of `data`, (bytes,)."""
    found = _base64_runs(data)
    escapes = b"\\" in data
    hexadecimal = array[1:] == ord("x")
    pairs = np.count_nonzero(hexadecimal & (array[:-1] == ord("0")))
    if escapes:
        pairs += np.count_nonzero(hexadecimal & (array[:-1] == ord("\\")))
    if pairs >= 8:
        found += [len(match[0]) for match in HEX_PAIRS.finditer(data)]
    if escapes and np.count_nonzero((array[1:] == ord("u")) & (array[:-1] == ord("\\"))) >= 8:
        found += [len(match[0]) for match in UNICODE_ESCAPES.finditer(data)]
    return max(found, default=0), sum(found)


def _base64_runs(data: bytes) -> list[int]:
    """Lengths of the runs that look encoded: a list of words, one a line, has no long line in it."""
    found: list[int] = []
    classes, end = b"", 0
    for position in _inside_long_words(data):
        if position < end:
            continue
        classes = classes or data.translate(CLASSES)
        start, end = classes.rfind(b" ", 0, position) + 1, classes.find(b" ", position)
        end = len(data) if end < 0 else end
        if end - start >= thresholds.MIN_BASE64_RUN:
            found.append(end - start)
    return found


def _inside_long_words(data: bytes) -> list[int]:
    """Positions in every run of 40 characters of base64 on one line, and in some shorter runs."""
    whole = len(data) // 8 * 8  # a run of 40 holds four aligned words of eight bytes
    words = np.frombuffer(data.translate(IN_A_LINE)[:whole], np.uint64) == EIGHT
    pairs = words[:-1] & words[1:]
    return [8 * int(i) for i in np.flatnonzero(pairs[:-2] & pairs[2:])]
