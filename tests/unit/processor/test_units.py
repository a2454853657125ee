"""Tiny texts in, units or a reason out."""
# ruff: noqa: E501, ISC004 (texts and what is found in them are read side by side)

import resource
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.processor.reasons import Reason
from services.processor.stages import syntax, units
from services.processor.stages.grammars import GRAMMARS
from services.processor.values import Rejection, Unit

# language → text, and its units as (kind, name, first line)
EXAMPLES: dict[str, tuple[str, list[tuple[str, str, int]]]] = {
    "python": (
        "class A:\n    @b\n    async def f(x):\n        def inner(): pass\n\nif 1:\n    def g(): pass\nh = lambda: 1\n",
        [("class", "A", 1), ("method", "f", 3), ("function", "inner", 4), ("function", "g", 7)],
    ),
    "rust": (
        "pub fn a() { let c = || { fn z() {} }; }\nimpl<T> A for B<T> { fn m(&self) {} }\nimpl B { }\n"
        "trait T { fn s(); fn d() {} }\nmod m { struct U; enum E { A } }\nmod n;\n",
        [
            ("function", "a", 1), ("function", "z", 1), ("impl", "A for B<T>", 2), ("method", "m", 2),
            ("impl", "B", 3), ("trait", "T", 4), ("method", "d", 4), ("module", "m", 5), ("struct", "U", 5),
            ("enum", "E", 5),
        ],
    ),
    "go": (
        "package a\nfunc F() { type L struct{} }\nfunc (r *R) M() {}\ntype S struct { a int }\n"
        "type (\n I interface{ M() }\n N int\n)\nfunc assembly()\n",
        [
            ("function", "F", 2), ("struct", "L", 2), ("method", "M", 3), ("struct", "S", 4), ("interface", "I", 6),
        ],
    ),
    "java": (
        "class A<T> {\n A() {}\n void m() { f(new G().h(new B() { public void q() {} })); class L {} }\n"
        " abstract void n();\n}\nenum E { X { void r() {} }; void s() {} }\ninterface I { default void d() {} void e(); }\n",
        [
            ("class", "A", 1), ("method", "A", 2), ("method", "m", 3), ("method", "q", 3), ("class", "L", 3),
            ("enum", "E", 6), ("method", "r", 6), ("method", "s", 6), ("interface", "I", 7), ("method", "d", 7),
        ],
    ),
    "javascript": (
        "function f() {}\nconst g = async () => {};\nclass A { m() {} b = () => {}; }\nexports.h = function () {};\n"
        "const o = { k() {}, p: () => 1 };\nrun(function () {}, () => 1);\n",
        [
            ("function", "f", 1), ("function", "g", 2), ("class", "A", 3), ("method", "m", 3), ("method", "b", 3),
            ("function", "h", 4), ("method", "k", 5), ("function", "p", 5),
        ],
    ),
    "typescript": (
        "interface I { a(): void }\nabstract class A { abstract x(): void; m(): void {} }\nenum E { A }\n"
        "namespace N { function f() {} }\nfunction sig(): void;\nconst g = (x: number): number => x;\n",
        [
            ("interface", "I", 1), ("class", "A", 2), ("method", "m", 2), ("enum", "E", 3), ("module", "N", 4),
            ("function", "f", 4), ("function", "g", 6),
        ],
    ),
    "c": (
        "static int *f(int a) { return 0; }\nstruct S { int a; };\nstruct F;\ntypedef struct { int b; } T;\n"
        "enum E { A };\nint p(void);\nstruct S g(struct S *s) { return *s; }\n",
        [("function", "f", 1), ("struct", "S", 2), ("struct", "T", 4), ("enum", "E", 5), ("function", "g", 7)],
    ),
    "c++": (
        "namespace a { template <class T>\nclass C : D { C() {} ~C(); bool operator==(C c) {} C(C&) = delete; }; }\n"
        "int N::f() { return 1; }\nnamespace { void hidden() {} }\nSOME_MACRO\nclass EXPORT_API X : Y { void m() {} };\n",
        [
            ("module", "a", 1), ("class", "C", 1), ("method", "C", 2), ("method", "operator==", 2), ("method", "f", 3),
            ("function", "hidden", 4), ("class", "X", 6), ("method", "m", 6),
        ],
    ),
    "c#": (
        "namespace A {\nclass C { C() {} void m() { void local() {} } int E() => 1; abstract void n(); }\n"
        "struct S {}\nrecord R(int a);\ninterface I { void q(); }\nenum Z { A }\n}\n",
        [
            ("module", "A", 1), ("class", "C", 2), ("method", "C", 2), ("method", "m", 2), ("function", "local", 2),
            ("method", "E", 2), ("struct", "S", 3), ("class", "R", 4), ("interface", "I", 5), ("enum", "Z", 6),
        ],
    ),
    "ruby": (
        "module M\n class A < B\n  def m(x) = 1\n  def self.n; end\n  class << self\n   def o; end\n  end\n end\nend\ndef top; end\n",
        [
            ("module", "M", 1), ("class", "A", 2), ("method", "m", 3), ("method", "n", 4), ("method", "o", 6),
            ("function", "top", 10),
        ],
    ),
    "php": (
        "<?php\nabstract class C { function m() {} abstract function n(); }\ninterface I { function a(); }\n"
        "trait T { function b() {} }\nenum E { case A; }\nfunction f() {}\n",
        [
            ("class", "C", 2), ("method", "m", 2), ("interface", "I", 3), ("trait", "T", 4), ("method", "b", 4),
            ("enum", "E", 5), ("function", "f", 6),
        ],
    ),
    "kotlin": (
        "class A(val x: Int) {\n fun m() = 1\n companion object {\n  fun c() {}\n }\n}\ninterface I {\n fun a()\n}\n"
        "enum class E { A }\nobject O { }\nfun String.ext() {}\n",
        [
            ("class", "A", 1), ("method", "m", 2), ("class", "Companion", 3), ("method", "c", 4),
            ("interface", "I", 7), ("enum", "E", 10), ("class", "O", 11), ("function", "ext", 12),
        ],
    ),
    "swift": (
        "class A { init(x: Int) {}\n func m() { func local() {} } }\nstruct S { }\nenum E { case a }\n"
        "protocol P { func a() }\nextension A { func b() {} }\nfunc f() -> Int { 1 }\n",
        [
            ("class", "A", 1), ("method", "init", 1), ("method", "m", 2), ("function", "local", 2), ("struct", "S", 3),
            ("enum", "E", 4), ("interface", "P", 5), ("impl", "A", 6), ("method", "b", 6), ("function", "f", 7),
        ],
    ),
    "scala": (
        "class A(x: Int) { def m = 1\n def n: Int }\ntrait T { def q(): Unit = {} }\nobject O { }\ndef top = 3\n",
        [("class", "A", 1), ("method", "m", 1), ("trait", "T", 3), ("method", "q", 3), ("class", "O", 4), ("function", "top", 5)],
    ),
    "shell": (
        "f() {\n g() { :; }\n}\nfunction h { :; }\n",
        [("function", "f", 1), ("function", "g", 2), ("function", "h", 4)],
    ),
}  # fmt: skip


def split(language: str, text: str) -> tuple[Unit, ...]:
    found = units.split(language, text)
    assert not isinstance(found, Rejection), found.detail
    return found


@pytest.mark.parametrize("language", EXAMPLES)
def test_what_is_a_unit(language: str) -> None:
    """Definitions with bodies are units, by kind and name; declarations and anonymous functions are none."""
    text, expected = EXAMPLES[language]
    assert [(unit.kind, unit.name, unit.start_line) for unit in split(language, text)] == expected


def test_every_language_has_an_example() -> None:
    """The table of grammars and that of examples name the same languages."""
    assert EXAMPLES.keys() == GRAMMARS.keys()


@pytest.mark.parametrize("language", ["sql", "markdown", "json", "unheard of"])
def test_other_languages_have_no_units(language: str) -> None:
    """They are not parsed either: anything passes."""
    assert units.split(language, "((((") == ()


@pytest.mark.parametrize(
    ("language", "text", "lead"),
    [
        ("python", "x = 1  # of x\n\n# one\n# two\n@b\ndef f(): pass\n", "# one\n# two\n@b\n"),
        ("python", "# far\n\ndef f(): pass\n", ""),
        ("python", "x = 1  # of x\ndef f(): pass\n", ""),
        ("rust", "/// One.\n#[test]\nfn f() {}\n", "/// One.\n#[test]\n"),
        ("go", "package a\n\n// F does.\nfunc F() {}\n", "// F does.\n"),
        ("java", "/** One. */\nclass A { }\n", "/** One. */\n"),
        ("javascript", "/** One. */\nexport const f = () => {};\n", "/** One. */\nexport "),
        ("typescript", "// One.\n@D()\nexport class A {}\n", "// One.\n@D()\nexport "),
        ("c++", "/* One. */\ntemplate <class T> void f() {}\n", "/* One. */\n"),
    ],
)
def test_what_leads_a_unit(language: str, text: str, lead: str) -> None:
    """Comments, attributes and decorators right above belong to it; those of the line before, or further up, do not."""
    unit = split(language, text)[0]
    assert text.encode()[unit.comment_byte : unit.start_byte].decode() == lead


def test_bytes_and_lines_of_text_beyond_ascii() -> None:
    r"""Spans count bytes of UTF-8, lines break at \n alone."""
    text = "# é\u2028ü\nclass Ü:\n    def größe(self):\n        return '€'\n"
    outer, inner = split("python", text)
    assert (outer.name, inner.name) == ("Ü", "größe")
    assert text.encode()[inner.start_byte : inner.end_byte].decode() == "def größe(self):\n        return '€'"
    assert (outer.start_line, outer.end_line, inner.start_line, inner.end_line) == (2, 4, 3, 4)


def test_tsx_is_typescript() -> None:
    """Elements in the code parse."""
    assert [unit.name for unit in split("typescript", "export const A = () => <a href='x'>y</a>;\n")] == ["A"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1\ndef broken(:\n    pass\n", "line 2"),
        ("import os\nprint 'a', os\n", "line 2"),
        ("try:\n    pass\nexcept ValueError, e:\n    pass\n", "line 3"),
    ],
)
def test_python_that_does_not_parse(text: str, line: str) -> None:
    """Broken Python and Python 2 are refused by what Python says, with the line."""
    found = units.split("python", text)
    assert isinstance(found, Rejection)
    assert found.reason == Reason.SYNTAX_ERROR
    assert found.detail.startswith(line)


@pytest.mark.parametrize(
    "text",
    [
        '"""\nprint the sum\nexec it now\n"""\n',
        "print(1)\nprint (2)\n",
        "match x:\n    case {'a': [1, *_]}:\n        pass\n",
    ],
)
def test_python_3_is_not_taken_for_python_2(text: str) -> None:
    """Words in a docstring, and what only looks old, stay."""
    assert split("python", text) == ()


@pytest.mark.parametrize("language", sorted(GRAMMARS.keys() - {"php", "python", "kotlin", "shell"}))
def test_prose_does_not_parse(language: str) -> None:
    """Text that is not the language at all is refused, and the detail names a line."""
    prose = (
        "It's the 1st (of ] many; paragraphs: that} are \"not code' at all -- yet) $ @ they {[ read well!\n"
        * 20
    )
    found = units.split(language, prose)
    assert isinstance(found, Rejection)
    assert "line" in found.detail


def test_one_error_does_not_refuse_a_file() -> None:
    """A macro that the grammar does not know leaves the functions around it."""
    text = "DECLARE(x) y z\nint f(void) { return 1; }\nint g(void) { return 2; }\n" + "int a;\n" * 20
    assert {"g"} <= {unit.name for unit in split("c", text)}


HOSTILE = {
    "parentheses": "(" * 200_000, "braces": "{\n" * 100_000, "calls": "f(" * 100_000, "generics": "A<B<" * 50_000,
    "else if": "if (a) {\n} else " * 15_000, "elif": "if 1: pass\n" + "elif 1: pass\n" * 15_000, "quotes": "'\n" * 100_000,
    "string": '"' + "a" * 500_000, "one line": "a=1;" * 60_000, "shifts": "<" * 200_000, "comments": "/*" * 100_000,
    "nots": "x = (\n" + "not\n" * 40_000 + "1)\n", "arrows": "a=>" * 60_000, "functions": "function(){" * 20_000,
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_input_ends_soon(text: str) -> None:
    """Text made to exhaust parsers gets an answer in seconds, within a bounded growth of memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for language in ("python", "javascript", "c++"):
        started = time.process_time()
        assert isinstance(units.split(language, text), tuple | Rejection)
        assert time.process_time() - started < 3 * syntax.MAX_CPU_SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


def test_python_nested_beyond_reason_is_refused() -> None:
    """What no person nests ends in a reason before Python's own parser sees it."""
    for text in ("x = (\n" + "not\n" * 40_000 + "1)\n", "(" * 5_000 + "\n"):
        found = units.split("python", text)
        assert isinstance(found, Rejection)
        assert found.reason == Reason.SYNTAX_ERROR


@pytest.mark.parametrize(("limit", "told"), [("MAX_CPU_SECONDS", "s"), ("MAX_GROWTH_BYTES", "MiB")])
def test_a_parse_that_uses_too_much_is_stopped(
    limit: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends in a reason, and the parser can be used again."""
    monkeypatch.setattr(syntax, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(syntax, limit, -(1 << 40))
    found = units.split("go", "package a\n" + "func f() { g(1) }\n" * 500)
    assert isinstance(found, Rejection)
    assert found.reason == Reason.SYNTAX_ERROR
    assert found.detail.startswith("the parser was stopped: it took more than")
    assert found.detail.endswith(told)
    monkeypatch.undo()
    assert [unit.name for unit in split("go", "package a\nfunc f() {}\n")] == ["f"]


def check(language: str, text: str) -> None:
    found = units.split(language, text)
    if isinstance(found, Rejection):
        assert found.detail
        return
    data = text.encode()
    open_spans: list[int] = []
    for unit in found:
        assert 0 <= unit.comment_byte <= unit.start_byte < unit.end_byte <= len(data)
        data[unit.comment_byte : unit.start_byte].decode()
        data[unit.start_byte : unit.end_byte].decode()
        assert unit.start_line == data.count(b"\n", 0, unit.start_byte) + 1
        assert unit.end_line == data.count(b"\n", 0, unit.end_byte - 1) + 1
        while open_spans and open_spans[-1] <= unit.start_byte:
            open_spans.pop()
        assert not open_spans or unit.end_byte <= open_spans[-1]  # nested or apart
        open_spans.append(unit.end_byte)
    assert list(found) == sorted(found, key=lambda unit: (unit.start_byte, -unit.end_byte))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(GRAMMARS)), st.binary(max_size=300))
def test_any_bytes_get_an_answer(language: str, data: bytes) -> None:
    """split never raises."""
    check(language, data.decode(errors="ignore"))


PIECES = sorted({piece for text, _ in EXAMPLES.values() for piece in text.splitlines(keepends=True)})


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(sorted(GRAMMARS)),
    st.lists(st.sampled_from([*PIECES, "é\n", "// x\n", "# y\n", "{", "}", "\r\n"]), max_size=12),
)
def test_spans_of_any_mixture_hold(language: str, pieces: list[str]) -> None:
    """Spans nest or are apart, lie on characters, and lines agree with bytes."""
    check(language, "".join(pieces))


@pytest.mark.parametrize("language", EXAMPLES)
def test_the_walk_leaves_nothing_out(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it finds with its short cuts is what it finds without."""
    text = EXAMPLES[language][0]
    found = split(language, text)
    monkeypatch.setattr(units, "_signals", lambda _plan, data: list(range(len(data) + 1)))
    assert split(language, text) == found
