"""MinHash band keys: what counts as a word, what shares a key, and that hostile text costs no more."""

import hashlib
import time

import numpy as np
import pytest

from services.processor.stages import minhash

FOX = "The quick brown fox jumps over the lazy dog"


def keys(text):
    bands = minhash.band_keys(text)
    return set() if bands is None else {bands[i : i + 8] + bytes([i]) for i in range(0, len(bands), 8)}


def program(lines, changed=0):
    """A text of distinct lines, the first `changed` of them unlike those of any other program."""
    return "\n".join(
        f"{'other' if n < changed else 'same'} value{chr(97 + n % 26)} {word(n)}" for n in range(lines)
    )


def word(number):
    return " ".join(hashlib.sha256(b"%d" % number).hexdigest()[i : i + 8] for i in range(0, 40, 8))


def test_keys_are_the_same_on_every_machine_and_python():
    """Stored keys are compared with keys made years later: these values never change."""
    bands = minhash.band_keys(FOX)
    assert bands is not None
    assert bands[:24].hex() == "41887594965ec05346c79d62e1592d591d281c40d0d990ad"
    assert (
        hashlib.sha256(minhash.band_keys(program(300)) or b"").hexdigest()[:32]
        == "30432f46e82e90afd26cd76a36bef8db"
    )


def test_fourteen_keys_of_eight_bytes():
    """A text has 112 bytes of band keys."""
    assert len(minhash.band_keys(FOX) or b"") == 112


@pytest.mark.parametrize("text", ["", " \n", "one two three four", "a.b.c.d", "\0\0\0"])
def test_fewer_than_five_words_have_no_keys(text):
    """Without a 5-gram there is nothing to compare."""
    assert minhash.band_keys(text) is None


@pytest.mark.parametrize(
    "same",
    [
        "the  QUICK\tbrown\n\nfox_jumps(over.the):lazy-dog",
        "  The quick brown fox jumps over the lazy dog  ",
        "# The quick brown\n# fox jumps over\n# the lazy dog",
    ],
)
def test_case_layout_and_punctuation_do_not_count(same):
    """Only the words count, and an underscore ends one."""
    assert minhash.band_keys(same) == minhash.band_keys(FOX)


def test_digits_are_alike():
    """A version number more or less makes no other text."""
    assert minhash.band_keys("version 1.2.34 of the year 2024") == minhash.band_keys(
        "version 7.8.90 of the year 1999"
    )


def test_a_small_change_keeps_a_key():
    """Of 400 lines five are new: near duplicates."""
    assert keys(program(400)) & keys(program(400, changed=5))


def test_half_changed_shares_no_key():
    """Of 400 lines 200 are new: two texts."""
    assert not keys(program(400)) & keys(program(400, changed=200))


def test_the_curve_is_that_of_fourteen_bands_of_eight():
    """Of pairs with Jaccard similarity s, a share of 1 − (1 − s⁸)¹⁴ meets in a key, within sampling error."""
    rng = np.random.default_rng(3)
    for similarity in (0.5, 0.72, 0.85):
        met = 0
        for _ in range(300):
            grams = rng.integers(0, 2**63, 600, dtype=np.uint64)
            shared = round(400 * 2 * similarity / (1 + similarity))  # of 400 in each
            other = np.concatenate([grams[:shared], grams[400 : 800 - shared]])
            met += bool(_band_set(grams[:400]) & _band_set(other))
        expected = 1 - (1 - similarity**8) ** 14
        assert abs(met / 300 - expected) < 0.09, (similarity, met / 300, expected)


def _band_set(grams):
    bands = minhash.keys_of(grams)
    return {bands[i : i + 8] for i in range(0, 112, 8)}


@pytest.mark.parametrize(
    "hostile",
    [
        "a" * 1_000_000,
        "a " * 500_000,
        " ".join(str(n) for n in range(150_000)),
        " " * 1_000_000,
        "é" * 500_000,
        "\0" * 1_000_000,
        "a_" * 500_000,
        "zlib" * 2_000 + " x" * 400_000,
    ],
    ids=[
        "one word",
        "the same word",
        "distinct words",
        "blanks",
        "not ASCII",
        "NUL",
        "snake",
        "long word first",
    ],
)
def test_hostile_megabyte_stays_cheap(hostile):
    """A megabyte of anything costs less than 200 ms."""
    begun = time.process_time()
    minhash.band_keys(hostile)
    assert time.process_time() - begun < 0.2
