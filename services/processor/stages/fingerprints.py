"""A number for the code of a unit: equal wherever it was copied, whatever became of layout and comments.

8 bytes of BLAKE2b over the unit without comments, docstrings and white space; names count. Comments are
found by their marks and what stands before them, not by a parser: where a string holds such a mark, what
follows it is not looked at, so that units which differ there alone are taken for the same.
"""

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b

from services.processor.stages.languages import LINE_COMMENT
from services.processor.thresholds import FINGERPRINT_BYTES, FINGERPRINT_LINES

FINGERPRINT_VERSION = 1  # of the stored ones: raise it with any change here that changes a number
MOST_NESTED = 8  # times the bytes of a text that are looked at: units in units, which hostile texts pile up
WHITE_SPACE = b" \t\n\r\f\v"
# The literal first makes a fast search; what stands before it is then looked back at.
_HASH = re.compile(rb"#(?<=[ \t\n;]#)[^\n]*+")
_SLASHES = re.compile(
    rb"/(?:/(?<=[ \t\n;{},()]//)[^\n]*+|\*(?<=[ \t\n;{},()=:]/\*)(?:[^*]++|\*(?!/))*+(?:\*/|\Z))"
)
_SHORT_DOCSTRING = re.compile(rb":[ \t]*+\n[ \t]*+[rRuU]?+(?:\"[^\"\n]++\"|'[^'\n]++')[ \t]*+(?=\n)")

Span = tuple[int, int, int]  # of a unit: first byte, end, lines


def of_units(language: str, data: bytes, spans: Sequence[Span]) -> list[int | None]:
    """64 bits with a sign for each unit of a text; None for what is too small to matter."""
    bare = _bare(language)
    has_returns = b"\r" in data
    left = MOST_NESTED * len(data)
    found: list[int | None] = []
    for start, end, lines in spans:
        if lines < FINGERPRINT_LINES or end - start < FINGERPRINT_BYTES or end - start > left:
            found.append(None)
            continue
        left -= end - start
        code = data[start:end].replace(b"\r", b"") if has_returns else data[start:end]
        code = bare(code).translate(None, WHITE_SPACE)
        found.append(_hash(code) if len(code) >= FINGERPRINT_BYTES else None)
    return found


def _hash(code: bytes) -> int:
    return int.from_bytes(blake2b(code, digest_size=8).digest(), "big", signed=True)


def _bare(language: str) -> Callable[[bytes], bytes]:
    if language == "python":
        return _bare_python
    return _bare_hashes if LINE_COMMENT.get(language) == "#" else _bare_slashes


def _bare_slashes(code: bytes) -> bytes:
    return _SLASHES.sub(b"", code)


def _bare_hashes(code: bytes) -> bytes:
    return _HASH.sub(b"", code)


def _bare_python(code: bytes) -> bytes:
    for quotes in (b'"""', b"'''"):
        if quotes in code:
            code = _without_docstrings(code, quotes)
    if b'"\n' in code or b"'\n" in code:
        code = _SHORT_DOCSTRING.sub(b":", code)
    return _HASH.sub(b"", code)


def _without_docstrings(code: bytes, quotes: bytes) -> bytes:
    """Strings in three quotes that begin a line are documentation, as in comments.py."""
    parts = code.split(quotes)
    kept = parts[:1]
    for before, inside, after in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        begins = before.rstrip(b" \trRuU").endswith(b"\n")
        kept += (after,) if begins else (quotes, inside, quotes, after)
    if len(parts) % 2 == 0:  # never closed
        kept += (quotes, parts[-1])
    return b"".join(kept)
