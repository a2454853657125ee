"""Names, shebangs and, where those are ambiguous, content."""

import pytest

from services.processor import language
from services.processor.reasons import Reason
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
        ("a.c", "c"),
        ("a.cpp", "c++"),
        ("a.hpp", "c++"),
        ("a.cs", "c#"),
        ("a.rb", "ruby"),
        ("a.php", "php"),
        ("a.kt", "kotlin"),
        ("a.swift", "swift"),
        ("a.scala", "scala"),
        ("a.sh", "shell"),
        ("a.sql", "sql"),
        ("a.html", "html"),
        ("a.css", "css"),
        ("README.md", "markdown"),
        ("a.json", "json"),
        ("a.yml", "yaml"),
        ("a.toml", "toml"),
        ("a.ini", "ini"),
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


@pytest.mark.parametrize(
    ("shebang", "expected"),
    [
        ("#!/bin/sh", "shell"),
        ("#!/usr/bin/env python3", "python"),
        ("#! /usr/bin/env -S node --x", "javascript"),
        ("#!/usr/bin/python2.7 -u", "python"),
        ("#!/usr/local/bin/ruby", "ruby"),
    ],
)
def test_by_shebang(shebang: str, expected: str) -> None:
    """A file without extension is what its interpreter says."""
    assert language.detect("tool", shebang + "\ncode\n") == expected


@pytest.mark.parametrize(
    "text", ["", "#!", "#!\n", "#!/usr/bin/env\n", "#! -x", "#!/opt/unheard-of\n", "plain"]
)
def test_no_shebang_no_language(text: str) -> None:
    """Anything else is of unknown language."""
    found = language.detect("tool", text)
    assert isinstance(found, Rejection)
    assert found.reason == Reason.UNKNOWN_LANGUAGE


def test_a_header_is_what_it_contains() -> None:
    """`.h` is C++ when it holds what only C++ has."""
    assert language.detect("a.h", "int add(int, int);\n") == "c"
    assert language.detect("a.h", "#pragma once\nnamespace shop {\n}\n") == "c++"


def test_a_translation_is_not_typescript() -> None:
    """Qt's `.ts` files are XML."""
    assert language.detect("a.ts", '<?xml version="1.0"?><TS></TS>') == "xml"
