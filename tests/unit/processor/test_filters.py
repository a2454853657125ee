"""Each limit refuses what passes it, and lets good code of its language be."""

import time

import pytest

from services.processor.reasons import Reason
from services.processor.stages import filters
from services.processor.stages.figures import Figures
from services.processor.stages.languages import ALL
from services.processor.thresholds import LIMITS, Limit
from services.processor.values import Code, Rejection

GOOD = '''"""Distances on the plane."""

import math


def distance(first, second):
    """The length of the straight line between two points."""
    return math.hypot(first[0] - second[0], first[1] - second[1])


def nearest(points, origin):
    """The point that lies closest to the origin; raises ValueError when there is none."""
    if not points:
        raise ValueError("no points to choose from")
    return min(points, key=lambda point: distance(point, origin))
'''
STATEMENT = "total_{n} = previous_{n} + value_of_item({n})\n"
BODY = "".join(STATEMENT.format(n=word) for word in ("one", "two", "three", "four", "five", "six", "seven"))


def code(text: str, language: str = "python") -> Code:
    return Code("a", language, text, text.encode(), text.splitlines())


def reason(text: str, language: str = "python") -> Reason | None:
    refused = filters.refuse(code(text, language))
    return refused.reason if refused else None


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        (GOOD, "python", None),
        ("x = 1\n", "python", Reason.TOO_SHORT),
        ("a;\n" * 100_001, "c", Reason.TOO_MANY_LINES),
        ('  "key of it": "value",\n' * 513, "json", Reason.TOO_MANY_LINES),
        ('  "key of it": "value",\n' * 513, "yaml", Reason.TOO_MANY_LINES),
        (GOOD + "# " + "long " * 250 + "\n", "python", Reason.LONG_LINE),
        (GOOD + " ".join(dir(str) * 3) + "\n", "markdown", None),
        (GOOD + "long " * 25_000 + "\n", "markdown", Reason.LONG_LINE),
        (("# " + "long " * 30 + "\n") * 9, "python", Reason.LONG_LINES_ON_AVERAGE),
        ("ab\n" * 30, "python", Reason.SHORT_LINES_ON_AVERAGE),
        ("function(a,b){c(d)};" * 3 + "\n" + "f(a,b);\n" * 3, "javascript", Reason.TOO_FEW_WORDS),
        (("function(a,b){c(d)};" * 4 + "\n") * 20, "javascript", Reason.MINIFIED),
        (GOOD.replace("\n", "\n" + " " * 50), "python", Reason.MOSTLY_BLANK),
        (GOOD.replace("\n", "\n" + " " * 50), "yaml", None),
        ("# " + "+-=*/ " * 12 + "\n", "python", Reason.LOW_ALPHABETIC),
        ("values = [\n" + "1234567, nineteen,\n" * 30 + "]\n", "python", Reason.MANY_DIGITS),
        ("<div class='a long name of a class'></div>\n" * 20, "html", Reason.HIDDEN_MARKUP),
        (
            "// " + "a remark on nothing at all\n// " * 60 + "\nvar x = 1;\n",
            "javascript",
            Reason.MOSTLY_COMMENTS,
        ),
        ("# " + "a remark\n# " * 7 + "\nanswer = the_answer()\n", "python", Reason.TOO_FEW_WORDS),
        ("key = some\nother = things\nthird = that_is_set_here\n", "toml", Reason.TOO_FEW_WORDS),
        ("".join(f"x = 0x{a}bcdef{b};\n" for a in "abcdef" for b in "abcdef"), "c", Reason.HEXADECIMAL),
        (
            "".join(f'    "{word} is the message of this error",\n' for word in BODY.split()),
            "go",
            Reason.MOSTLY_STRINGS,
        ),
        (
            "int table[] = {\n" + "  fa, fb, fc, fd,\n  ab, cd, ef, ee,\n" * 20 + "};\n",
            "c",
            Reason.DATA_TABLE,
        ),
        (
            "from .one import One\nfrom .two import Two\nname = One(Two, 'a', 'b')\ntwo = Two(x)\nx = 1\n",
            "python",
            Reason.MOSTLY_IMPORTS,
        ),
        ("".join(f"#include <some_{n}_header.h>\n" for n in "abcdefghijkl"), "c", Reason.MOSTLY_DIRECTIVES),
        (
            "class First(Error):\n    pass\nclass Second(Error):\n    pass\n" + BODY,
            "python",
            Reason.EMPTY_BODIES,
        ),
        (BODY + "".join(f"print(total_{n})\n" for n in "abcdefghij"), "python", Reason.MOSTLY_PRINTS),
        (
            BODY + "".join(f"assert total_{n} == {n}\n" for n in "abcdefghijklmnop"),
            "python",
            Reason.MOSTLY_ASSERTS,
        ),
        ("total = total + value_of_item\n" * 60, "python", Reason.REPEATED_LINES),
        (
            "".join(f"set the name of {n} here now to the name of the\n" for n in range(40)),
            "makefile",
            Reason.REPEATED_WORDS,
        ),
    ],
)
def test_refused_for_its_reason(text: str, language: str, expected: Reason | None) -> None:
    """Each limit has text that it, and none before it, refuses, and languages it does not hold for."""
    assert reason(text, language) == expected


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.reason}-{limit.figure}")
def test_every_limit_has_figure_languages_and_source(limit: Limit) -> None:
    """The table is complete: a known figure, a bound, known languages, and who says so."""
    assert hasattr(Figures, limit.figure)
    assert limit.languages <= ALL
    assert limit.languages
    assert limit.source
    assert limit.least > 0 or limit.most < 10**9


def test_the_refusal_tells_figure_and_bound() -> None:
    """A person reads what was measured and what was allowed."""
    refused = filters.refuse(code("x = 1\n"))
    assert refused == Rejection(Reason.TOO_SHORT, "characters 6, at least 50 in python")


@pytest.mark.parametrize(
    "head",
    [
        "# Code AutoGenerated by a tool\n",
        "// Code by protoc. DO NOT EDIT.\n",
        "\n\n# This file was generated by x\n",
    ],
)
def test_what_says_that_it_is_generated(head: str) -> None:
    """The first five lines are read for the phrases of generators."""
    assert reason(head + GOOD) == Reason.GENERATED
    assert reason(GOOD + head) is None


@pytest.mark.parametrize("name", ["package-lock.json", "api_pb2.py", "go.sum", "a/b/x.pb.go", "app.js.map"])
def test_names_of_generated_files(name: str) -> None:
    """Lock files and the output of compilers are refused unread."""
    refused = filters.refuse_by_name(name)
    assert refused is not None
    assert refused.reason == Reason.GENERATED


def test_names_of_minified_files() -> None:
    """Likewise bundles."""
    refused = filters.refuse_by_name("static/jquery.min.js")
    assert refused is not None
    assert refused.reason == Reason.MINIFIED


BASE64 = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJz"


@pytest.mark.parametrize(
    "blob",
    [
        f"{BASE64}\n" * 40,
        BASE64 * 18,
        ", ".join(f"0x{n % 256:02x}" for n in range(400)).replace("0x00, ", "0x00,\n"),
        "".join(f"\\u00{n % 90 + 10}" for n in range(300)),
        "".join(f"\\x{n % 256:02x}" for n in range(300)),
    ],
)
def test_encoded_data_in_code(blob: str) -> None:
    """Base64, wrapped or not, hexadecimal pairs and Unicode escapes are found in what else is good code."""
    wrapped = "\n".join(blob[at : at + 900] for at in range(0, len(blob), 900))
    found = reason(GOOD + f'data = """\n{wrapped}\n"""\n' + GOOD)
    assert found in (Reason.ENCODED_DATA, Reason.MANY_DIGITS)


def test_a_word_list_is_not_encoded_data() -> None:
    """Short lines of letters alone are words, however many."""
    words = "".join(f"{chr(97 + n % 26)}dentifier{chr(97 + n // 26)}\n" for n in range(200))
    assert reason(words, "markdown") is None


def test_scripts_and_styles_are_not_visible_text() -> None:
    """What a browser does not show does not count, also when it is never closed."""
    shown = "<p>" + " ".join(dir(str)).replace("_", "") + "</p>\n"
    script = "<script>" + "var hidden = 'words that nobody reads';\n" * 10 + "</script>\n"
    assert reason(shown + script[:200] + "</script>", "html") is None
    assert reason("<html>" + script, "html") == Reason.HIDDEN_MARKUP
    assert reason(script.replace("</script>", ""), "html") == Reason.HIDDEN_MARKUP


@pytest.mark.parametrize(
    "text",
    [
        '"""' * 20_000,
        "\n'''\n\"\"\"" * 10_000,
        "/*\n" * 30_000,
        "<script" * 16_000,
        "<" * 130_000,
        "x" * 130_000,
        "QUJD\n" * 30_000,
        "0x" * 60_000,
        '"' * 100_000,
        "\n# a = " * 20_000,
        "\u2028" * 100_000,
    ],
)
def test_hostile_text_is_judged_in_time(text: str) -> None:
    """Text made against the patterns costs no more than its length."""
    for language in ("python", "c", "html", "json", "markdown", "ruby", "sql", "kotlin"):
        start = time.process_time()
        filters.refuse(code(text, language))
        for name in dir(Figures):
            if not name.startswith("_"):
                getattr(code(text, language).figures, name)
        assert time.process_time() - start < 2
