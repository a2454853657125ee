"""Python with other names does the same."""

import ast
import colorsys
import heapq
import random
import statistics
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from services.trainer.samples.renaming import LOOKUPS, renamed
from services.trainer.samples.source import SampleSource, Unit
from tests.tiny_model import standard_library


def rename(text: str, seed: int = 1, units: tuple[Unit, ...] = ()) -> str | None:
    copy = renamed(SampleSource(1, b"", "python", textwrap.dedent(text), 90, units), random.Random(seed))
    return None if copy is None else copy.text


def names(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def test_locals_and_parameters_change_and_nothing_else() -> None:
    """Imports, attributes, globals, strings and builtins stay."""
    text = rename(
        """
        import os
        LIMIT = 3

        def search(folder, *found, deep=LIMIT):
            "Look in folder for found."
            names = [entry.name for entry in os.scandir(folder) if entry.depth < deep]
            for mine in names:
                print(mine, "mine", len(found), LIMIT)
            return names
        """
    )
    assert text is not None
    kept = {"os", "LIMIT", "print", "len"}
    assert kept <= names(text)
    assert not {"folder", "names", "entry", "mine", "found", "deep"} & names(text)
    assert '"Look in folder for found."' in text
    assert '"mine"' in text
    assert ".scandir(" in text
    assert ".depth" in text
    assert "=LIMIT" in text


@pytest.mark.parametrize(
    "body",
    [
        "def f(given):\n    return g(given=1)\ndef g(given): return given",  # by keyword
        "def f(given):\n    return f'{given}'",  # in an f-string
        "def f():\n    global given\n    given = 1",
        "def f(given):\n    def g():\n        nonlocal given\n        given = 1\n    g()",
        "def f(given):\n    return locals()",
        "def f():\n    import given\n    return given",
        "def f():\n    try: pass\n    except E as given: print(given)",
        "def f():\n    def given(): pass\n    return given",
        "def f():\n    class A:\n        given = 1\n    given = A.given\n    return given",
        "def f(x):\n    match x:\n        case given: return given",
        "def f(given):\n    return f(**{'given': given})",
        "given = 1\ndef f():\n    return [given for x in given]",
        "def f():\n    def g(): return given\n    return g\ngiven = 2",
    ],
)
def test_a_name_that_means_more_than_a_variable_is_kept(body: str) -> None:
    """Whatever else of the file changes."""
    text = rename(body)
    assert text is None or sum(word == "given" for word in _words(text)) == sum(
        word == "given" for word in _words(body)
    )


def _words(text: str) -> list[str]:
    return "".join(char if char.isidentifier() else " " for char in text).split()


def test_a_closure_keeps_its_variable() -> None:
    """The same new name inside and outside."""
    text = rename(
        "def f(a):\n    b = a\n    def g(c):\n        return [b + d + a for d in c]\n    return g\n"
    )
    assert text is not None
    scope: dict[str, Callable[..., Callable[..., list[int]]]] = {}
    exec(text, scope)
    assert scope["f"](1)([1, 2]) == [3, 4]
    assert not {"a", "b", "c", "d"} & names(text)


def test_units_move_with_the_text() -> None:
    """Their bytes hold the same definition."""
    text = "def f(x):\n    return x\n\n\ndef g(yy):\n    return yy\n"
    start = text.index("def g")
    units = (Unit("function", "f", 0, 22, 1, 2, 0), Unit("function", "g", start, len(text) - 1, 5, 6, start))
    copy = renamed(SampleSource(1, b"", "python", text, 90, units), random.Random(1))
    assert copy is not None
    spans = [copy.text[unit.start_byte : unit.end_byte] for unit in copy.units]
    assert [ast.parse(span).body[0].name for span in spans] == ["f", "g"]  # type: ignore[attr-defined]
    assert spans == [part.strip() for part in copy.text.split("\n\n\n")]


@pytest.mark.parametrize("path", standard_library(40), ids=lambda path: path.stem)
def test_real_modules_keep_their_tree(path: Path) -> None:
    """The same but for names, and another text wherever a function has a variable."""
    text = path.read_text(encoding="utf-8")
    changed = rename(text)
    if changed is None:
        return
    assert changed != text
    assert _nameless(changed) == _nameless(text)
    assert changed.count("\n") == text.count("\n")


def _nameless(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = "_"
        if isinstance(node, ast.arg):
            node.arg = "_"
    return ast.dump(tree)


def run(module: object, seed: int) -> dict[str, object]:
    """The module's own text, renamed and executed."""
    text = Path(module.__file__).read_text(encoding="utf-8")  # type: ignore[attr-defined]
    changed = rename(text, seed)
    assert changed is not None
    assert not any(f"{word}(" in changed and f"{word}(" not in text for word in LOOKUPS)
    scope: dict[str, object] = {"__name__": module.__name__}  # type: ignore[attr-defined]
    exec(compile(changed, "renamed", "exec"), scope)
    return scope


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pure_functions_give_the_same_results(seed: int) -> None:
    """Of modules of the standard library, executed under other names."""
    colours, heaps, texts, figures = (run(module, seed) for module in (colorsys, heapq, textwrap, statistics))
    for rgb in ((0.1, 0.5, 0.9), (0.7, 0.7, 0.2), (0.0, 0.0, 0.0)):
        for name in ("rgb_to_hls", "rgb_to_hsv", "rgb_to_yiq", "hls_to_rgb", "hsv_to_rgb"):
            assert colours[name](*rgb) == getattr(colorsys, name)(*rgb)  # type: ignore[operator]
    numbers = [random.Random(seed).randrange(100) for _ in range(50)]
    ordered = list(numbers)
    heaps["heapify"](ordered)  # type: ignore[operator]
    assert [heaps["heappop"](ordered) for _ in numbers] == sorted(numbers)  # type: ignore[operator]
    assert heaps["nsmallest"](5, numbers, key=lambda n: -n) == heapq.nsmallest(5, numbers, key=lambda n: -n)  # type: ignore[operator]
    assert list(heaps["merge"]([1, 4], [2, 3], reverse=False)) == [1, 2, 3, 4]  # type: ignore[operator]
    prose = (__doc__ + " ") * 9
    assert texts["wrap"](prose, width=30) == textwrap.wrap(prose, width=30)  # type: ignore[operator]
    assert texts["dedent"]("  a\n    b") == textwrap.dedent("  a\n    b")  # type: ignore[operator]
    for name in ("mean", "median", "stdev", "mode", "quantiles"):
        assert figures[name](numbers) == getattr(statistics, name)(numbers)  # type: ignore[operator]


@pytest.mark.parametrize("text", ["def f(:", "x = 1\n", "\x00", "", "def f(x):\n    return x\x0c\x0cy\r\r"])
def test_what_cannot_be_renamed_is_left_alone(text: str) -> None:
    """Broken, without functions, or with lines that are counted in two ways."""
    assert rename(text) is None


def test_other_languages_are_left_alone() -> None:
    source = SampleSource(1, b"", "go", "def f(x):\n    return x\n")
    assert renamed(source, random.Random(1)) is None
