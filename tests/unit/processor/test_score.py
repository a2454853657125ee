"""The score discriminates, is monotone in its figures, and says why."""

import pytest

from services.processor import score
from services.processor.values import Code

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


def scored(text: str, language: str = "python") -> score.Score:
    return score.score(Code("a", language, text, text.encode(), text.splitlines()))


def test_good_code_passes_a_threshold_of_70() -> None:
    """Documented, structured, checked code with telling names is worth training on."""
    assert scored(GOOD).value >= 80


def test_middling_length_is_not_enough() -> None:
    """The seed passed every file of 10 to 500 lines; a flat list of assignments does not pass here."""
    assert scored("".join(f"a{n} = b{n}\n" for n in range(100))).value < 50


@pytest.mark.parametrize("language", ["markdown", "json", "yaml", "html", "css", "toml", "makefile"])
def test_what_is_not_code_stays_below_the_threshold(language: str) -> None:
    """Prose, markup and data are kept, but score below 70 whatever they say."""
    assert (
        sum(most for reason, (_, most, _, _) in score.RAMPS.items() if reason not in score.OF_CODE_ONLY) < 70
    )
    assert scored(GOOD, language).value < 70


def test_the_maxima_add_up_to_100() -> None:
    """A file that is best in every figure has 100 points."""
    assert sum(most for _, most, _, _ in score.RAMPS.values()) == 100


@pytest.mark.parametrize("reason", sorted(score.RAMPS))
def test_points_are_monotone(reason: str) -> None:
    """On its way from none to all a figure never loses points."""
    _, most, begin, full = score.RAMPS[reason]
    steps = [score._points(begin + (full - begin) * i / 20, most, begin, full) for i in range(-5, 26)]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, most)


@pytest.mark.parametrize(
    ("reason", "worse"),
    [
        ("documentation", "\n".join(line for line in GOOD.splitlines() if '"""' not in line)),
        ("uniqueness", GOOD + "    numbered_pieces = source.copy()\n" * 40),
        ("line_length", GOOD + f"# {'long ' * 25}\n" * 20),
        ("finished", GOOD + "# TODO write this\n" * 20),
        ("flatness", GOOD + f"{' ' * 24}deeply_nested = True\n" * 40),
        ("checks", GOOD.replace("raise", "print")),
        ("naming", GOOD + "".join(f"a{n} = b{n}\n" for n in range(60))),
        ("substance", "def first_function(): pass\ndef second_function(): pass\n" * 20),
    ],
)
def test_a_fault_costs_points_of_its_reason(reason: str, worse: str) -> None:
    """Each reason answers to what its name says."""
    assert scored(worse).points[reason] < scored(GOOD).points[reason]


def test_a_docstring_counts_as_documentation_to_its_end() -> None:
    """Lines inside a docstring are no code, and the line after it is."""
    comments, code = score._split(['"""One', "two = 2", 'three."""', "four = 4"], "python")
    assert (len(comments), code) == (3, ["four = 4"])


def test_braces_open_definitions_but_control_does_not() -> None:
    """Functions are counted in languages with braces; loops and branches are not."""
    lines = ["int main(void)", "{", "  for (;;) {", "  }", "}", "void f() {", "}", "} else {"]
    assert score._definitions(lines, [line.strip() for line in lines], "c") == 2


def test_equal_text_has_equal_score() -> None:
    """Deterministic, and marked with the version of the rules."""
    assert scored(GOOD) == scored(GOOD)
    assert scored(GOOD).version == score.SCORER_VERSION
