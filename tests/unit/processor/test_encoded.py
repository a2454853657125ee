"""Runs of encoded data: the arrays find what the regular expressions find by themselves."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from services.processor.stages import encoded, words

PIECES = ("0x41,", "0x41", "0x4", "0x", "\\x41", "\\u0041", "\\u00", "\n", " " * 50, "x", "0")


def runs(data: bytes) -> tuple[int, int]:
    return encoded.runs(data, np.frombuffer(data, np.uint8), words.fold(data))


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.integers(1, 9)), max_size=20))
def test_runs_of_escapes_are_those_a_search_from_the_start_finds(pieces):
    """Looking only where eight escapes lie close together misses none."""
    data = " ".join(piece * times for piece, times in pieces).encode()
    found = [
        len(match[0])
        for pattern in (encoded.HEX_PAIRS, encoded.UNICODE_ESCAPES)
        for match in pattern.finditer(data)
    ]
    assert runs(data) == (max(found, default=0), sum(found))


@given(st.integers(0, 9), st.integers(0, 200), st.sampled_from([";", "é", " "]))
def test_a_run_of_base64_counts_from_sixty_four_bytes(before, length, end):
    """Wherever it begins; what ends it may lie beyond ASCII."""
    data = f"{end * before}{end}{'Q' * length}{end}".encode()
    assert runs(data) == ((length, length) if length >= 64 else (0, 0))


def test_a_word_list_is_no_base64() -> None:
    """Short lines alone, however many, are no encoded data; lines of forty are."""
    assert runs(b"wordlist\n" * 40) == (0, 0)
    assert runs(b";" + b"Q" * 40 + b"\n" + b"Q" * 40 + b";") == (81, 81)
