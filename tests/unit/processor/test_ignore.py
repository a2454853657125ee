"""Ignore patterns: which are applied, and that none of them takes long."""

import time

import pytest

from services.processor.sources.ignore import IgnoreRules, Scope, is_usable, is_vendored


@pytest.mark.parametrize(
    ("lines", "path", "verdict"),
    [
        (["*.log"], "a/b.log", True),
        (["*.log", "!keep.log"], "keep.log", False),
        (["/build/"], "build/", True),
        (["/build/"], "src/build/", None),
        (["build/"], "src/build/x.py", True),
        (["docs/**/x.md"], "docs/a/b/x.md", True),
        (["# *.py", "", "  "], "a.py", None),
        (["caf\u00e9.py"], "caf\u00e9.py", True),
    ],
)
def test_patterns_mean_what_they_mean_in_git(lines: list[str], path: str, verdict: bool | None) -> None:
    """True: ignored, False: taken back, None: nothing is said."""
    assert IgnoreRules(lines).verdict(path) is verdict


def test_a_deeper_directory_has_the_first_word() -> None:
    """What it does not speak of is decided above it."""
    top = Scope(IgnoreRules(["*.log", "tmp.py"]), 0)
    deep = Scope(IgnoreRules(["!a.log"]), len("d/"), top)
    assert not deep.ignores("d/a.log")
    assert deep.ignores("d/b.log")
    assert deep.ignores("d/tmp.py")


@pytest.mark.parametrize("pattern", ["a*b*c*d*e", "x" * 2_000, "", "   ", "!"])
def test_costly_and_senseless_patterns_are_not_usable(pattern: str) -> None:
    """They are left out, the others of their file stay."""
    assert not is_usable(pattern)
    assert IgnoreRules([pattern, "*.py"]).ignores("a.py")


def test_patterns_that_are_too_costly_together_are_left_out() -> None:
    """Rather than that the walk fails."""
    rules = IgnoreRules(["?" * 190 + str(n) for n in range(300)])
    assert (rules.size, rules.cost) == (0, 300)
    assert rules.verdict("a.py") is None


@pytest.mark.parametrize(
    "lines",
    [
        [f"*a{'?' * k}b*" for k in range(1, 20)],
        [f"*a{'?' * 12}b{n}" for n in range(20)],
        ["**/a/**/b/**"] * 30,
        ["[a-c]*[!b]*x"] * 50,
    ],
)
def test_matching_takes_no_time_whatever_the_patterns(lines: list[str]) -> None:
    """Patterns whose automaton explodes, against paths made for them."""
    rules = IgnoreRules(lines)
    paths = ["".join("abc/"[(n * n + m * 7 + n * m) % 4] for n in range(600)) for m in range(100)]
    begun = time.process_time()
    for path in paths:
        rules.verdict(path)
    assert time.process_time() - begun < 2.0  # 20 ms a path at the very worst


def test_patterns_made_to_be_slow_are_given_up() -> None:
    """After a second of them, so that a folder of many files still ends."""
    rules = IgnoreRules([f"*a{'?' * 25}b{n}*" for n in range(100)])
    begun = time.process_time()
    for number in range(3_000):
        rules.verdict("".join("abc/b1a"[(number * m + m * m + number) % 7] for m in range(600)))
    assert time.process_time() - begun < 5.0


def test_vendored_directories_are_known_by_name() -> None:
    """And by what installers append."""
    assert is_vendored("node_modules")
    assert is_vendored("requests-2.0.dist-info")
    assert not is_vendored("src")
