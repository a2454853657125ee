"""Runs of encoded data: base64, hexadecimal pairs, Unicode escapes (StarCoder2, arXiv 2402.19173 §2)."""

import re
import string

import numpy as np
from numpy.typing import NDArray

from services.processor import thresholds
from services.processor.stages import words

BASE64 = frozenset((string.ascii_letters + string.digits + "+/=\n").encode())
CLASSES = bytes(0x78 if byte in BASE64 else 0x20 for byte in range(256))  # x where base64 may be
# The first of base64 as it is folded: signs, digits, letters. What is beyond ASCII is negative.
FIRST = np.int8(words.SIGN)
EIGHT = np.frombuffer(b"\1" * 8, np.uint64)[0]
ZERO, BACKSLASH, X, U = (np.uint8(ord(character)) for character in "0\\xu")
HEX_PAIRS = re.compile(rb"(?:(?:0x|\\x)[0-9a-fA-F]{2}(?:,\s{0,40}+|\b\s{0,40}+)){8,}+")
UNICODE_ESCAPES = re.compile(rb"(?:\\u[0-9a-fA-F]{4}){8,}+")
SEVEN_BYTES = 7 * 45  # of seven pairs at most, and so from the first of eight to the last


def runs(data: bytes, array: NDArray[np.uint8], folded: words.Folded) -> tuple[int, int]:
    """Bytes of the longest run, and of all; `array` is a view of `data`, (bytes,)."""
    found = _base64_runs(data, folded)
    before, after = array[:-1], array[1:]
    begin = (after == X) & (before == ZERO)
    if b"\\" in data:
        escape = before == BACKSLASH
        begin |= escape & (after == X)
        found += _escaped_runs(UNICODE_ESCAPES, data, escape & (after == U))
    found += _escaped_runs(HEX_PAIRS, data, begin)
    return max(found, default=0), sum(found)


def _escaped_runs(pattern: re.Pattern[bytes], data: bytes, begin: NDArray[np.bool_]) -> list[int]:
    """Lengths of the runs, which begin where eight escapes do that lie close to one another."""
    if np.count_nonzero(begin) < 8:
        return []
    starts = begin.nonzero()[0]
    found, end = [], 0
    for position in starts[:-7][starts[7:] - starts[:-7] <= SEVEN_BYTES].tolist():
        if position >= end and (match := pattern.match(data, position)):
            end = match.end()
            found.append(end - position)
    return found


def _base64_runs(data: bytes, folded: words.Folded) -> list[int]:
    """Lengths of the runs that look encoded: a list of words, one a line, has no long line in it."""
    found: list[int] = []
    classes, end = b"", 0
    for position in _inside_long_words(folded):
        if position < end:
            continue
        classes = classes or data.translate(CLASSES)
        start, end = classes.rfind(b" ", 0, position) + 1, classes.find(b" ", position)
        end = len(data) if end < 0 else end
        if end - start >= thresholds.MIN_BASE64_RUN:
            found.append(end - start)
    return found


def _inside_long_words(folded: words.Folded) -> list[int]:
    """Positions in every run of 40 characters of base64 on one line, and in some shorter runs."""
    text = folded.array[1 : -words.AHEAD].view(np.int8)
    whole = len(text) // 8 * 8  # a run of 40 holds four aligned words of eight bytes
    full = (text[:whole] >= FIRST).view(np.uint64) == EIGHT
    pairs = full[:-1] & full[1:]
    fours = pairs[:-2] & pairs[2:]
    return (fours.nonzero()[0] * 8).tolist() if np.count_nonzero(fours) else []
