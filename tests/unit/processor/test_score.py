"""The score discriminates, is monotone in its figures, and says why."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.processor.stages import comments, score
from services.processor.stages.figures import Figures
from services.processor.stages.languages import ALL, CODE
from services.processor.values import Code, Score

FUNCTION = '''
def split_{noun}(source, separator):
    """Cut the {noun} at every separator and number the pieces.

    Raises ValueError when the separator of the {noun} is empty.
    """
    if not separator:
        raise ValueError("the separator of a {noun} is empty")
    {noun}_pieces = source.split(separator)
    numbered_{noun} = dict(enumerate({noun}_pieces))
    return numbered_{noun}
'''
NOUNS = (
    "letter",
    "sentence",
    "chapter",
    "record",
    "message",
    "header",
    "address",
    "picture",
    "invoice",
    "recipe",
)
GOOD = "".join(FUNCTION.format(noun=noun) for noun in NOUNS)


def figures(text: str, language: str = "python") -> Figures:
    return Code("a", language, text, text.encode(), text.splitlines()).figures


def scored(text: str, language: str = "python") -> Score:
    return score.score(Code("a", language, text, text.encode(), text.splitlines()))


def test_good_code_passes_a_threshold_of_70() -> None:
    """Documented, structured, checked code with telling names is worth training on."""
    assert scored(GOOD).value >= 80


def test_middling_length_is_not_enough() -> None:
    """The seed passed every file of 10 to 500 lines; a flat list of assignments does not pass here."""
    assert scored("".join(f"a{n} = b{n}\n" for n in range(100))).value < 50


@pytest.mark.parametrize("language", sorted(ALL - CODE))
def test_what_is_not_code_stays_below_the_threshold(language: str) -> None:
    """Prose, markup and data are kept, but score below 70 whatever they say."""
    assert sum(ramp.most for ramp in score.RAMPS.values() if language in ramp.languages) < 70
    assert scored(GOOD, language).value < 70


def test_the_maxima_add_up_to_100() -> None:
    """A file that is best in every figure has 100 points."""
    assert sum(ramp.most for ramp in score.RAMPS.values()) == 100


@pytest.mark.parametrize("reason", sorted(score.RAMPS))
def test_points_are_monotone(reason: str) -> None:
    """On its way from none to all a figure never loses points."""
    ramp = score.RAMPS[reason]
    steps = [ramp.points(ramp.begin + (ramp.full - ramp.begin) * i / 20) for i in range(-5, 26)]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, ramp.most)


def test_docstrings_and_comments_are_told_from_code() -> None:
    """A docstring counts to its end; a string that does not begin a line is code."""
    flat = '\n"""One\ntwo = 2\nthree."""\nfour = 4\n# five\nsix = """seven\neight"""\nr"""nine"""'
    assert comments.part(flat, "python") == (
        '\n"""One\ntwo = 2\nthree."""\nr"""nine"""\n# five',
        '\nfour = 4\nsix = """seven\neight"""',
    )


@pytest.mark.parametrize(
    ("language", "flat", "code"),
    [
        ("c", "\n/* one\ntwo */\nint three;\n// four", "\nint three;"),
        ("c", "\n/* never closed\nint three;", ""),
        ("html", "\n<!-- one\n-->\n<p>", "\n<p>"),
        ("ruby", "\n=begin\none\n=end\ntwo\n# three", "\ntwo"),
        ("sql", "\n-- one\nselect 2", "\nselect 2"),
        ("markdown", "\n# a heading", "\n# a heading"),
        ("json", "\n{}", "\n{}"),
    ],
)
def test_comments_of_other_languages(language: str, flat: str, code: str) -> None:
    """Each language has its own marks."""
    assert comments.part(flat, language)[1] == code


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["python", "c", "html", "ruby", "sql"]),
    st.lists(
        st.sampled_from(
            ['"""', "'''", "/*", "*/", "<!--", "-->", "//", "#", "\n", "x", "r", " = 1", "=begin"]
        )
    ),
)
def test_nothing_is_lost_between_comments_and_code(language: str, words: list[str]) -> None:
    """Every character is either of a comment or of code."""
    flat = "\n" + "".join(words)
    found, code = comments.part(flat, language)
    assert sorted(found + code) == sorted(flat)


def test_braces_open_definitions_but_control_does_not() -> None:
    """Functions are counted in languages with braces; loops and branches are not."""
    text = "int main(void)\n{\n  for (;;) {\n  }\n}\nvoid f() {\n  if (x) {\n  } else {\n  }\n}\n"
    assert figures(text, "c").defined == 2


@pytest.mark.parametrize(
    ("language", "text", "defined"),
    [
        ("rust", "pub(crate) async fn one() {}\nimpl Two {\n}\nlet x = 3;\n", 2),
        ("go", "func (s *Shop) One() {\n}\ntype Two struct {\n}\n", 2),
        ("kotlin", "private suspend fun one() {\n}\ndata class Two(val x: Int)\n", 2),
        ("ruby", "class One\n  def two\n  end\nend\n", 2),
        ("shell", "one() {\n}\nfunction two {\n}\n", 2),
    ],
)
def test_definitions_of_other_languages(language: str, text: str, defined: int) -> None:
    """Where words tell them, words are counted."""
    assert figures(text, language).defined == defined


def test_equal_text_has_equal_score() -> None:
    """Deterministic, and marked with the version of the rules."""
    assert scored(GOOD) == scored(GOOD)
    assert scored(GOOD).version == score.SCORER_VERSION


def test_the_path_does_not_matter() -> None:
    """Only what is written counts."""
    renamed = Code("tests/b.py", "python", GOOD, GOOD.encode(), GOOD.splitlines())
    assert score.score(renamed) == scored(GOOD)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(ALL)), st.text(max_size=300))
def test_any_text_has_a_score(language: str, text: str) -> None:
    """From 0 to 100, the sum of its points."""
    found = scored(text, language)
    assert 0 <= found.value <= 100
    assert found.value == sum(found.points.values())
