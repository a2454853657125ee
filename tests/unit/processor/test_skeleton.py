"""The skeleton of code: what a rename, another layout, other comments and strings leave as it is."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.stages import skeleton

CODE = """
def total(prices, limit=10):
    result = []
    for price in prices:
        if price > limit and price not in result:
            result.append(price * 2)
    return sum(result) / len(prices)
"""
RENAMED = """
def f(a_b, c=10):
    d = []
    for e in a_b:
        if e > c and e not in d: d.append(e * 2)
    return (sum(d) / len(a_b))
"""


def skeleton_of(text):
    return skeleton.tokens(text.encode()).tolist()


def test_other_names_layout_and_parentheses_are_alike():
    """A renamed and reformatted copy has the same skeleton."""
    assert skeleton_of(CODE) == skeleton_of(RENAMED)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a + b", "a - b"),
        ("x = 1", "x = 2"),
        ("for a in b: c", "while a in b: c"),
        ("len(a)", "sum(a)"),
        ("isinstance(a, b)", "isinstances(a, b)"),
        ("a.startswith(b)", "a.endswith(b)"),
    ],
)
def test_what_changes_the_program_changes_the_skeleton(one, other):
    """Operators, numbers, keywords and well-known functions count."""
    assert skeleton_of(one) != skeleton_of(other)


@given(st.text(alphabet=" ab_9(.,+\n\"é'#", max_size=80))
def test_one_token_a_word_or_mark(text):
    """Words and marks are counted as a scan byte by byte counts them; blanks and parentheses are none."""
    words, marks, inside = 0, 0, False
    for char in text:
        word = char.isalnum() or char == "_"
        words += word and not inside
        marks += not word and char not in " \n()"
        inside = word
    assert len(skeleton_of(text)) == words + marks


@given(st.lists(st.sampled_from(["a", "if", "1", "+", ":"]), max_size=30))
def test_grams_are_alike_where_their_tokens_are(parts):
    """As many distinct hashes as distinct rows of eight tokens."""
    grams = skeleton.grams(skeleton.tokens(" ".join(parts).encode())).tolist()
    rows = [tuple(parts[i : i + 8]) for i in range(len(parts) - 7)]
    assert len(grams) == len(rows)
    assert len(set(grams)) == len(set(rows))


@given(st.lists(st.sampled_from(["a", "if", "+", ":"]), max_size=30))
def test_shapes_are_alike_where_all_but_the_words_is(parts):
    """As many distinct hashes as distinct rows of twelve tokens with all words alike."""
    shapes = skeleton.shapes(" ".join(parts).encode()).tolist()
    alike = ["a" if part == "if" else part for part in parts]
    rows = [tuple(alike[i : i + 12]) for i in range(len(alike) - 11)]
    assert len(shapes) == len(rows)
    assert len(set(shapes)) == len(set(rows))


def test_prose_and_lists_have_no_telling_shape():
    """What any comment or table holds says nothing of a program."""
    assert not skeleton.telling_shapes(b"once upon a time there was " * 9)
    assert not skeleton.telling_shapes(b"1, 2, 3, 4, " * 9)
    assert skeleton.telling_shapes(CODE.encode())


@pytest.mark.parametrize(
    ("language", "text", "bare"),
    [
        ("python", "x = 1  # one", "x = 1   "),
        ("python", 'x = "#"', 'x = ""'),
        ("python", "x = 'it\\'s'", 'x = ""'),
        ("python", 'def f():\n    """Doc."""\n    return 1', "def f():\n    \n    return 1"),
        ("python", 'x = """not\na doc"""', 'x = ""'),
        ("python", "f(a, b,\n)", "f(a, b\n)"),
        ("python", "a // b", "a // b"),
        ("c", "a; // b", "a;  "),
        ("c", "a; /* b\n */ c;", "a;   c;"),
        ("c", "#define A 1", "#define A 1"),
    ],
)
def test_bare_code(language, text, bare):
    """Comments and docstrings go, strings are emptied, a comma before a closing bracket goes."""
    assert skeleton.bare(text, language) == bare


@pytest.mark.parametrize(
    "hostile",
    ['"', "'\"", '"\\', "/*", ",\n", '"""\n', '\\"', "'''\"\"\"", "#", '"a\n', ", ", "//"],
)
@pytest.mark.parametrize("language", ["python", "c"])
def test_hostile_text_is_linear(hostile, language):
    """Whatever is opened and never closed, 200 kB take less than 0.3 s: quadratic time would take minutes."""
    begun = time.process_time()
    skeleton.bare(hostile * (200_000 // len(hostile)), language)
    assert time.process_time() - begun < 0.3


def test_every_kept_word_is_told_from_a_name():
    """No two of them fall on one place of the table."""
    name = skeleton_of("anything")
    assert not [word for word in skeleton._KEPT if skeleton_of(word.decode()) == name]
