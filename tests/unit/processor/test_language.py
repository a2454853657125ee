"""Names, shebangs and, where those are ambiguous, content."""

import time

import pytest

from services.processor.reasons import Reason
from services.processor.stages import language
from services.processor.stages.languages import ALL
from services.processor.values import Rejection


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.py", "python"),
        ("a.pyi", "python"),
        ("a.rs", "rust"),
        ("a.go", "go"),
        ("A.java", "java"),
        ("a.js", "javascript"),
        ("a.mjs", "javascript"),
        ("a.jsx", "javascript"),
        ("a.ts", "typescript"),
        ("a.tsx", "typescript"),
        ("a.mts", "typescript"),
        ("a.c", "c"),
        ("a.cpp", "c++"),
        ("a.hpp", "c++"),
        ("a.h++", "c++"),
        ("a.cs", "c#"),
        ("a.rb", "ruby"),
        ("a.podspec", "ruby"),
        ("a.php", "php"),
        ("a.kt", "kotlin"),
        ("a.kts", "kotlin"),
        ("a.swift", "swift"),
        ("a.scala", "scala"),
        ("a.sh", "shell"),
        ("a.ksh", "shell"),
        ("a.sql", "sql"),
        ("a.pgsql", "sql"),
        ("a.html", "html"),
        ("a.css", "css"),
        ("a.scss", "css"),
        ("README.md", "markdown"),
        ("a.json", "json"),
        ("a.jsonc", "json"),
        ("a.yml", "yaml"),
        ("a.toml", "toml"),
        ("a.ini", "ini"),
        ("a.properties", "ini"),
        (".editorconfig", "ini"),
        ("a.tf", "hcl"),
        ("a.xml", "xml"),
        ("Dockerfile", "dockerfile"),
        ("Makefile", "makefile"),
        ("CMakeLists.txt", "cmake"),
        ("Gemfile", "ruby"),
        ("x/y.z/a.PY", "python"),
    ],
)
def test_by_name(path: str, expected: str) -> None:
    """Every language of the list is known by extension or name."""
    assert language.detect(path, "text") == expected
    assert language.refuse_by_name(path) is None
    assert expected in ALL


@pytest.mark.parametrize(
    ("shebang", "expected"),
    [
        ("#!/bin/sh", "shell"),
        ("#!/usr/bin/env python3", "python"),
        ("#! /usr/bin/env -S node --x", "javascript"),
        ("#!/usr/bin/env LANG=C bash", "shell"),
        ("#!/usr/bin/python2.7 -u", "python"),
        ("#!/usr/local/bin/ruby", "ruby"),
    ],
)
def test_by_shebang(shebang: str, expected: str) -> None:
    """A file without extension is what its interpreter says."""
    assert language.detect("tool", shebang + "\ncode\n") == expected


def refused(path: str, text: str = "text") -> bool:
    found = language.detect(path, text)
    return isinstance(found, Rejection) and found.reason == Reason.UNKNOWN_LANGUAGE


@pytest.mark.parametrize(
    "text",
    ["", "#!", "#!\n", "#!/usr/bin/env\n", "#! -x", "#!/opt/unheard-of\n", "#!/usr/bin/env A=b", "plain"],
)
def test_no_shebang_no_language(text: str) -> None:
    """Anything else is of unknown language."""
    assert refused("tool", text)


@pytest.mark.parametrize(
    "path", ["a.m", "a.mm", "a.ipynb", "a.svg", "a.v", "a.pl", "a.cls", "a.fish", "a.txt", "a.vue", "a.lock"]
)
def test_not_trained_on(path: str) -> None:
    """Other languages, notebooks and drawings are refused, though some share tags with those we train on."""
    assert refused(path)


def test_a_notebook_is_refused_with_its_reason() -> None:
    """A person reads why a notebook is not JSON to us, by its name alone."""
    found = language.refuse_by_name("x/analysis.ipynb")
    assert found is not None
    assert "notebook" in found.detail


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int add(int, int);\n", "c"),
        ('#ifdef __cplusplus\nextern "C" {\n#endif\nint add(int, int);\n', "c"),
        ("#pragma once\nnamespace shop {\n}\n", "c++"),
        ("#include <vector>\n", "c++"),
        ("#include <stdio.h>\n", "c"),
        ("template <typename T>\nT one();\n", "c++"),
        ("/* a class of its own */\nstruct s { int x; };\n", "c"),
    ],
)
def test_a_header_is_what_it_contains(text: str, expected: str) -> None:
    """`.h` is C++ when it holds what only C++ has."""
    assert language.detect("a.h", text) == expected


def test_a_header_of_objective_c_is_not_trained_on() -> None:
    """Nor is it C, which it looks like."""
    assert refused("a.h", "#import <Foundation/Foundation.h>\n@interface Shop : NSObject\n@end\n")


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.ts", '<?xml version="1.0"?><TS></TS>', "xml"),
        ("a.ts", "<!DOCTYPE TS>\n<TS></TS>", "xml"),
        ("a.ts", "export const one = 1;\n", "typescript"),
        ("a.inc", "<?php echo 1;", "php"),
        ("a.inc", "#define ONE 1\n", "c"),
        ("a.conf", "[section]\nkey = value\n", "ini"),
        ("a.js", '<?xml version="1.0"?><svg/>', "xml"),
    ],
)
def test_content_decides_where_a_name_is_ambiguous(path: str, text: str, expected: str) -> None:
    """Qt's translations are XML, includes are of several languages, settings of any form."""
    assert language.detect(path, text) == expected


@pytest.mark.parametrize(("path", "text"), [("a.inc", "mov eax, 1"), ("a.conf", "listen 80;")])
def test_ambiguous_and_unknown(path: str, text: str) -> None:
    """What the content does not tell either is refused."""
    assert refused(path, text)


@pytest.mark.parametrize(
    "text", ["#include " * 3000, " \t" * 10_000, "[" * 20_000, "template " * 2500, "@" * 20_000]
)
def test_sniffing_is_linear(text: str) -> None:
    """Headers made for regular expressions take no longer than others."""
    start = time.process_time()
    for path in ("a.h", "a.inc", "a.conf", "a.ts"):
        language.detect(path, text)
    assert time.process_time() - start < 0.2
