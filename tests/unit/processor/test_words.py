"""Words as hashes: the arrays find what a plain reading finds."""

from hypothesis import given
from hypothesis import strategies as st

from services.processor.stages import words


@given(st.text(max_size=300))
def test_any_text_has_the_words_a_plain_reading_finds(text):
    """Array arithmetic finds exactly the words that a scan byte by byte finds, alike where they are alike."""
    folded = text.encode().translate(words._FOLDED).replace(b"/", b"\0")
    plain = [part for part in folded.split(b"\0") if part]
    hashed = words.hashes(text.encode()).tolist()
    assert len(hashed) == len(plain)
    assert len(set(hashed)) == len({(part[:16], part[-8:], len(part)) for part in plain})


@given(st.text("ab1é+/=_ \n", max_size=60))
def test_what_is_folded_counts_letters_and_digits(text):
    """Inside words lie letters, digits and what is beyond ASCII; digits are told apart."""
    folded = words.fold(text.encode())
    digits = int((folded.array == words.ZERO).sum())
    assert digits == text.count("1")
    assert int(folded.inside.sum()) - digits == sum(len(c.encode()) for c in text if c.isalpha())


@given(st.lists(st.text("abcdefghij", min_size=1, max_size=40), min_size=1, max_size=60))
def test_a_word_hashes_alike_wherever_it_stands(parts):
    """The hash of a word does not depend on its neighbours."""
    together = words.hashes(" ".join(parts).encode()).tolist()
    assert together == [words.hashes(part.encode()).tolist()[0] for part in parts]


@given(st.lists(st.sampled_from("abcdefgh"), max_size=40))
def test_ngrams_are_alike_where_their_words_are(parts):
    """As many distinct hashes as distinct rows of five words, and one for each row."""
    hashed = words.ngrams(words.hashes(" ".join(parts).encode())).tolist()
    rows = [tuple(parts[i : i + 5]) for i in range(len(parts) - 4)]
    assert len(hashed) == len(rows)
    assert len(set(zip(hashed, rows, strict=True))) == len(set(rows)) == len(set(hashed))


@given(st.text(max_size=200))
def test_one_folded_word_for_each_hash(text):
    """The words that are shown are those that were hashed."""
    assert len(words.folded(text.encode())) == len(words.hashes(text.encode()))
