"""The words of a text as 64-bit hashes: what near duplicates and leaked benchmarks are found by.

Words are hashed by arrays, never one by one in Python: the text's bytes are looked at as 64-bit
integers beginning at every byte, of which those where a word begins are taken. The cost is linear in
the text, whatever the text. Changing anything here changes every stored band key: see minhash.py.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NGRAM = 5  # words

Hashes = npt.NDArray[np.uint64]

# Odd multipliers: digits of π and e, the golden ratio, then the finalizers of MurmurHash3
_A, _B, _C = np.uint64(0x243F6A8885A308D3), np.uint64(0xB7E151628AED2A6B), np.uint64(0x9E3779B97F4A7C15)
_D, _E = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(32)

ZERO = np.uint8(ord("0"))
SIGN = np.uint8(ord("/"))  # right below the digits
# Bytes as they count: letters in lower case, digits alike, what is beyond ASCII as it is, the signs of
# base64 alike, all others 0. The underscore ends a word, as datatrove has it: a snake_case name is the
# words it is made of.
_FOLDED = bytes(
    byte if byte >= 0x80 else int(ZERO) if chr(byte).isdigit() else ord(chr(byte).lower())
    if chr(byte).isalpha()
    else int(SIGN) if chr(byte) in "+/=" else 0
    for byte in range(256)
)  # fmt: skip
_APART = bytes(0x20 if byte <= SIGN else byte for byte in range(256))  # blanks between words
AHEAD = 16  # bytes of zeros after the text, so that 64 bits can be read anywhere
_LOW = np.array([(1 << 8 * length) - 1 for length in range(9)], dtype=np.uint64)  # masks, by length


class Folded(NamedTuple):
    """A text with its bytes as they count: a zero before them, AHEAD behind."""

    padded: bytes
    array: npt.NDArray[np.uint8]  # a view of it
    inside: npt.NDArray[np.bool_]  # of the same shape: whether a byte is part of a word


def fold(data: bytes) -> Folded:
    """What hashes are made of, and other figures too: looked up once for each byte of a text in UTF-8."""
    padded = b"".join((b"\0", data.translate(_FOLDED), b"\0" * AHEAD))
    array = np.frombuffer(padded, np.uint8)
    return Folded(padded, array, array > SIGN)


def hashes(data: bytes) -> Hashes:  # (words,) uint64
    """A 64-bit hash of each word of a text in UTF-8, in their order.

    A word is a run of letters, digits and characters beyond ASCII; case does not count. Of a word
    longer than 24 bytes the first 16, the last 8 and the length count.
    """
    return hashes_of(fold(data))


def hashes_of(folded: Folded) -> Hashes:  # (words,) uint64
    """The same, where the text is folded already."""
    padded, _, inside = folded
    edges = (inside[1:] != inside[:-1]).nonzero()[0]  # in the text: where a word begins, where it has ended
    starts = edges[::2]
    lengths = edges[1::2] - starts
    at = np.ndarray((len(padded) - 8,), "<u8", padded, offset=1, strides=(1,))  # 64 bits from each byte
    hashed: Hashes = at[starts]
    hashed &= _LOW.take(lengths, mode="clip")
    hashed *= _A
    beyond = (lengths > 8).nonzero()[0]
    if len(beyond):
        start, length = starts[beyond], lengths[beyond]
        rest = at[start + 8]
        rest &= _LOW.take(length - 8, mode="clip")
        rest += length.view(np.uint64)
        rest *= _B
        rest ^= rest >> _HALF
        rest += at[start + length - 8]
        rest *= _C
        hashed[beyond] += rest
    hashed ^= hashed >> _HALF
    return hashed


def ngrams(hashed: Hashes) -> Hashes:  # (words - 4,) uint64
    """A hash of each five words that follow one another; none if there are fewer."""
    if len(hashed) < NGRAM:
        return hashed[:0]
    pairs = hashed[1:] * _B
    pairs += hashed[:-1]
    fours = pairs[2:] * _C
    fours += pairs[:-2]
    grams: Hashes = hashed[4:] * _D
    grams += fours[:-1]
    grams ^= grams >> _HALF
    grams *= _E
    grams ^= grams >> _HALF
    return grams


def folded(data: bytes) -> list[bytes]:
    """The words themselves, as they count: one for each hash."""
    return data.translate(_FOLDED).translate(_APART).split()
