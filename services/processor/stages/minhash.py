"""MinHash band keys of a text: two texts that share one are near duplicates.

5-grams of words as StarCoder2 has them (arXiv 2402.19173), 14 bands of 8 rows as datatrove's
MinhashConfig: a pair of Jaccard similarity 0.72 shares a key with a probability of about ⅔.
Changing anything here or in words.py changes every key: keys stored before match none made after, and
all files would have to be read again. Decision record: docs/decisions/0007-near-duplicates.md.
"""

import struct

import xxhash
from rensa import RMinHash  # type: ignore[import-untyped]

from services.processor.stages import words

BANDS = 14
ROWS = 8  # minima a band

_SEED = 42  # of the permutations
_SLOTS = BANDS * ROWS
_MINIMA = struct.Struct(f"<{_SLOTS}I")
_BANDS = struct.Struct(f"{4 * ROWS}s" * BANDS)


def band_keys(text: str) -> bytes | None:
    """The text's 14 band keys of 8 bytes, one after the other.

    None if it has fewer than five words and so no 5-gram: it has no near duplicates, only exact ones.
    The same on every machine and every version of Python.
    """
    return keys_of(words.ngrams(words.hashes(text.encode())))


def keys_of(grams: words.Hashes) -> bytes | None:
    """The band keys of a text whose n-grams are hashed already."""
    if not len(grams):
        return None
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(grams, (0, len(grams)), _SLOTS, _SEED)
    minima = _MINIMA.pack(*matrix.to_rows()[0])
    return b"".join(map(xxhash.xxh64_digest, _BANDS.unpack(minima), range(BANDS)))
