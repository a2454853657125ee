"""The order of a repository's files."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.samples.imports import in_import_order
from services.trainer.samples.source import SampleSource

CASES = {
    "python": (
        {
            "pkg/__init__.py": "",
            "pkg/base.py": "import os",
            "pkg/deep/leaf.py": "from ..base import (\n    A,\n    B,\n)",
            "pkg/top.py": "from pkg.deep import leaf as l, other\n    import pkg.late",
            "pkg/late.py": "x = 1",
        },
        [
            ("pkg/base.py", "pkg/deep/leaf.py"),
            ("pkg/deep/leaf.py", "pkg/top.py"),
            ("pkg/late.py", "pkg/top.py"),
        ],
    ),
    "rust": (
        {
            "src/lib.rs": "pub mod shapes;\nmod util;",
            "src/shapes.rs": "mod circle;\nuse crate::util::helper;",
            "src/shapes/circle.rs": "use super::super::util;\nuse std::fmt;",
            "src/util.rs": "pub fn helper() {}",
        },
        [
            ("src/shapes.rs", "src/lib.rs"),
            ("src/util.rs", "src/shapes.rs"),
            ("src/shapes/circle.rs", "src/shapes.rs"),
        ],
    ),
    "go": (
        {
            "cmd/app/main.go": 'package main\n\nimport (\n\t"fmt"\n\t"example.com/demo/internal/store"\n)\n',
            "internal/store/a.go": "package store",
            "internal/store/b.go": 'package store\nimport "example.com/demo/pkg/log"',
            "pkg/log/log.go": "package log",
        },
        [("internal/store/a.go", "cmd/app/main.go"), ("pkg/log/log.go", "internal/store/b.go")],
    ),
    "java": (
        {
            "src/main/java/com/acme/App.java": "import com.acme.model.Order;\nimport java.util.List;",
            "src/main/java/com/acme/model/Order.java": "import static com.acme.util.Zeit.now;",
            "src/main/java/com/acme/util/Zeit.java": "class Zeit {}",
        },
        [
            ("src/main/java/com/acme/model/Order.java", "src/main/java/com/acme/App.java"),
            ("src/main/java/com/acme/util/Zeit.java", "src/main/java/com/acme/model/Order.java"),
        ],
    ),
    "typescript": (
        {
            "src/app.ts": "import { a } from './lib';\nlet b = require('../shared/b.js');\nimport R from 'r'",
            "src/lib/index.ts": 'export * from "./z";',
            "src/lib/z.ts": "export const a = 1",
            "shared/b.ts": "",
        },
        [
            ("src/lib/index.ts", "src/app.ts"),
            ("src/lib/z.ts", "src/lib/index.ts"),
            ("shared/b.ts", "src/app.ts"),
        ],
    ),
    "c++": (
        {
            "src/main.cc": '#include <vector>\n#include "demo/shape.h"\n',
            "include/demo/shape.h": '#include "point.h"',
            "include/demo/point.h": "",
            "src/point.h": "",
        },
        [("include/demo/shape.h", "src/main.cc"), ("include/demo/point.h", "include/demo/shape.h")],
    ),
}  # fmt: skip


def files(language: str, texts: dict[str, str]) -> list[SampleSource]:
    return [
        SampleSource(number, b"", language, text, 90, (), "repo", path)
        for number, (path, text) in enumerate(texts.items())
    ]


@pytest.mark.parametrize("language", CASES)
def test_what_is_imported_comes_first(language: str) -> None:
    """By the manner of each language."""
    texts, before = CASES[language]
    order = [file.path for file in in_import_order(files(language, texts))]
    assert sorted(order) == sorted(texts)
    for first, second in before:
        assert order.index(first) < order.index(second), (first, second, order)


@given(st.dictionaries(st.integers(0, 15), st.sets(st.integers(0, 15))), st.randoms())
def test_every_file_is_there_once_however_they_import_one_another(
    graph: dict[int, set[int]], random_: random.Random
) -> None:
    """Circles included; the order does not depend on that of the rows; what is in no circle is in order."""
    texts = {
        f"m{at}.py": "".join(f"import m{other}\n" for other in sorted(others)) for at, others in graph.items()
    }
    given_files = files("python", texts)
    order = [file.path for file in in_import_order(given_files)]
    assert sorted(order) == sorted(texts)
    random_.shuffle(given_files)
    assert [file.path for file in in_import_order(given_files)] == order
    is_acyclic = all(other < at for at, others in graph.items() for other in others)
    if is_acyclic:
        for at, others in graph.items():
            for other in others & graph.keys():
                assert order.index(f"m{other}.py") < order.index(f"m{at}.py")


def test_two_contents_of_one_path_are_both_there() -> None:
    """Sources may be known by the same name before and after they changed."""
    alike = files("python", {"a.py": "x"}) + files("python", {"a.py": "y"})
    assert sorted(file.text for file in in_import_order(alike)) == ["x", "y"]
