"""The skeleton of code: its tokens with the names forgotten, as hashes of eight tokens each.

Renamed variables, another layout, other comments and other strings leave the skeleton as it is; what
remains are keywords, well-known functions and methods, numbers, operators and brackets, but for the
round ones, which formatters add and take away. The idea is that of MOSS (Schleimer, Wilkerson, Aiken:
Winnowing, SIGMOD 2003), without the sampling.

Tokens are found by arrays, as words are in minhash.py.
"""

import re

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

GRAM = 8  # tokens: about a line and a half
SHAPE = 12

# What keeps its name: a rename cannot touch it without changing what the code does.
_KEPT = frozenset(
    b"""
    and as assert async await break case catch class const continue def default del delete do elif else enum
    except extends false finally fn for foreach from func function global go if impl import in int is lambda
    let loop match mut new nil none None nonlocal not null or pass private public raise return self static
    struct super switch this throw True true False try type val var void while with yield
    abs all any bin bool bytes chr dict divmod enumerate filter float format frozenset hash hex input int
    isinstance iter len list map max min next oct open ord pow print range repr reversed round set sorted str
    sum tuple type zip
    append copy count decode encode endswith extend find get index insert isalpha isdigit islower isupper
    items join keys lower lstrip map pop push remove replace reverse rstrip size sort split sqrt startswith
    strip swapcase title upper update values ceil floor pi
    """.split()
)

_WORD = 1
_QUOTE = ord('"')
_CLASS = bytes(
    _WORD if chr(byte).isalnum() or byte == ord("_") or byte >= 0x80
    else 0 if byte <= 0x20 or byte in b"\\\x7f()"  # blanks, the backslash that continues a line, parentheses
    else _QUOTE if byte in b"'`"
    else byte
    for byte in range(256)
)  # fmt: skip
_AHEAD = 8
_LOW = np.array([(1 << 8 * length) - 1 for length in range(9)], dtype=np.uint64)
_A, _B, _C = np.uint64(0x243F6A8885A308D3), np.uint64(0xB7E151628AED2A6B), np.uint64(0x9E3779B97F4A7C15)
_D, _E = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(32)
_TABLE_BITS = 14  # the fewest at which no two kept words fall on one place
_SHIFT = np.uint64(64 - _TABLE_BITS)


def _head(word: bytes) -> int:
    """The first eight bytes of a word and, beyond those, its length, in one number."""
    return int.from_bytes(word[:8], "little") ^ (max(len(word) - 8, 0) << 56)


def _kept_table() -> Hashes:
    """Where a kept word would be found: the table at the top bits of its head's hash holds its head."""
    table = np.zeros(1 << _TABLE_BITS, dtype=np.uint64)
    for word in _KEPT:
        head = np.uint64(_head(word))
        with np.errstate(over="ignore"):
            table[int((head * _B) >> _SHIFT)] = head
    return table


_KEPT_AT = _kept_table()
_OF_CLASS = (
    np.arange(256, dtype=np.uint64) + np.uint64(3)
) * _C  # a hash of each punctuation mark, and of a name
_NAME = _OF_CLASS[_WORD]


def shapes(data: bytes) -> Hashes:  # (tokens - 11,) uint64
    """A hash of each twelve tokens that follow one another, where all words are alike.

    It tells less than `grams` of `tokens` and costs half: what to ask first.
    """
    return _shapes(_kinds(data + b"\0" * _AHEAD)[0])


def telling_shapes(data: bytes) -> list[int]:
    """Those of the shapes that are neither prose nor a list: of three kinds, three tokens not words."""
    kinds = _kinds(data + b"\0" * _AHEAD)[0]
    rows = (kinds[at : at + SHAPE].tolist() for at in range(len(kinds)))
    shaped = zip(_shapes(kinds).tolist(), rows, strict=False)
    return [shape for shape, row in shaped if len(set(row)) > 2 and SHAPE - row.count(_WORD) >= 3]


def _shapes(kinds: Bytes) -> Hashes:
    if len(kinds) < SHAPE:
        return np.empty(0, dtype=np.uint64)
    eights = _eights(kinds)
    hashed: Hashes = eights[: GRAM - SHAPE] * _A
    hashed += eights[SHAPE - GRAM :]
    hashed *= _E
    return hashed


def tokens(data: bytes) -> Hashes:  # (tokens,) uint64
    """A hash of each token of a code in UTF-8: all names hash alike, all else by what it is."""
    padded = data + b"\0" * _AHEAD
    kinds, positions, inside = _kinds(padded)
    hashed: Hashes = _OF_CLASS.take(kinds)
    words = np.flatnonzero(kinds == _WORD)
    starts = positions[words]
    lengths = np.flatnonzero(inside[:-1] > inside[1:]) - starts
    lengths += 1
    heads = _eights(np.frombuffer(padded, dtype=np.uint8))[starts]
    heads &= _LOW.take(lengths, mode="clip")
    heads ^= np.maximum(lengths - 8, 0).astype(np.uint64) << np.uint64(56)
    spread = heads * _B
    as_is = _KEPT_AT.take((spread >> _SHIFT).view(np.int64)) == heads
    as_is |= (heads & np.uint64(0xFF)) - np.uint64(ord("0")) < np.uint64(10)  # a number
    hashed[words] = np.where(as_is, spread, _OF_CLASS[_WORD])
    return hashed


def _kinds(padded: bytes) -> tuple[Bytes, Positions, Flags]:
    """Of each token its class and where it begins; of each byte whether it belongs to a word."""
    classes = np.frombuffer(padded.translate(_CLASS), dtype=np.uint8)
    inside = classes == _WORD
    begins = classes != 0
    begins[1:] &= ~(inside[1:] & inside[:-1])
    positions = np.flatnonzero(begins)
    return classes.take(positions), positions, inside


def _eights(data: Bytes) -> Hashes:
    """The 64-bit integers beginning at every byte, as a view."""
    return np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))


def grams(hashed: Hashes) -> Hashes:  # (tokens - 7,) uint64
    """A hash of each eight tokens that follow one another."""
    if len(hashed) < GRAM:
        return hashed[:0]
    pairs = hashed[1:] * _B
    pairs += hashed[:-1]
    fours = pairs[2:] * _C
    fours += pairs[:-2]
    eights: Hashes = fours[4:] * _D
    eights += fours[:-4]
    eights ^= eights >> _HALF
    eights *= _E
    return eights


# Each is linear whatever the text: what is opened and never closed ends with the text, or opens nothing.
# Each begins with a plain character, so that `re` runs to the next of these without a try at every byte.
_STRINGS = r"""
    "" (?: " [\s\S]*? (?: \"{3} | \Z ) )?+ | " (?: [^"\\\n] | \\. )++ "
    | '' (?: ' [\s\S]*? (?: '{3} | \Z ) )?+ | ' (?: [^'\\\n] | \\. )++ '
    | , (?= \s*+ [)\]}] )
    | \\.
"""
_HASH = re.compile(_STRINGS + r"| \# [^\n]*+", re.VERBOSE)
_SLASHES = re.compile(_STRINGS + r"| //[^\n]*+ | /\* [\s\S]*? (?: \*/ | \Z )", re.VERBOSE)
_HASH_COMMENTS = frozenset({"python", "ruby", "shell", "perl", "r", "julia", "elixir"})
_MAX_INDENT = 100  # characters before a docstring
_TO_LINE_END = (re.compile(rb"//[^\n]*+"), re.compile(rb"#[^\n]*+"))


def uncommented(data: bytes, language: str) -> bytes:
    """The code without its comments of one line, nor what looks like one inside a string: a cheap `bare`."""
    return _TO_LINE_END[language in _HASH_COMMENTS].sub(b"", data)


def bare(text: str, language: str) -> str:
    """The code without comments and docstrings, its strings empty, no comma before a closing bracket."""
    return (_HASH if language in _HASH_COMMENTS else _SLASHES).sub(_bared, text)


def _bared(match: re.Match[str]) -> str:
    found = match.group()
    if found[0] == "\\":
        return found
    if found[0] == ",":
        return ""
    if found[0] in "#/":
        return " "
    if found[:3] in ('"""', "'''"):
        before = match.string[max(0, match.start() - _MAX_INDENT) : match.start()]
        if not before.rpartition("\n")[2].strip():
            return ""  # a statement that is only a string
    return '""'
