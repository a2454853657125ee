"""DataFrameBench: BigCodeBench's tasks on tables, without naming the library that they were written for.

The package holds data, splits and licence (CC-BY-4.0). It is read, never imported: it wants a newer Python,
and its data are all that is used. Its canary says that only `train` may be trained on.
"""

import ast
import importlib.util
import io
import json
import textwrap
import tokenize
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError
from services.trainer.tasks import reading
from services.trainer.tasks.placed import SPLITS, PlacedTask, Split

NAME = "dataframebench"
LICENCE = "CC-BY-4.0"
FILES: Mapping[Split, str] = {"train": "train.jsonl", "validation": "val.jsonl", "test": "test.jsonl"}
IMPORTS = {"pandas": "import pandas as pd", "polars": "import polars as pl"}
LIBRARY = "pandas"  # what the references use that come from BigCodeBench
ASKS = "Use {library} as the data processing library in your solution."  # the package's own words
DATA_BELOW = ("", "data", f"{NAME}/data")  # of the folder that is named
INDENT = " " * 4
LARGEST = 64 << 20  # bytes of a file in a wheel; those of 0.1.1 have 7 million at most


def installed() -> Path | None:
    """The folder of its data, where the package is installed."""
    spec = importlib.util.find_spec(NAME)  # finds, never imports
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "data"
    return folder if folder.is_dir() else None


def read(where: Path, library: str = LIBRARY) -> list[PlacedTask]:
    """The tasks of all its splits. where: the package's folder, its data's, or its wheel.

    Raises ConfigurationError where the data are not there or not as they should be.
    """
    tasks: list[PlacedTask] = []
    for split in reversed(SPLITS):
        tasks += reading.placed(records(where, split, library), split)
    return tasks


def records(where: Path, split: Split, library: str = LIBRARY) -> list[tuple[str, dict[str, Any]]]:
    """A split's tasks in BigCodeBench's format, with `seed_id`, each after where it is.

    Raises ConfigurationError as `read` does.
    """
    if library not in IMPORTS:
        raise ConfigurationError(f"library {library!r}: expected {' or '.join(IMPORTS)}")
    name = FILES[split]
    found = []
    for number, line in enumerate(_text(where, name).split("\n"), 1):
        if not line.strip():
            continue
        place = f"{NAME}/{name}, line {number}"
        try:
            found.append((place, record(json.loads(line), library)))
        except (KeyError, TypeError, ValueError, SyntaxError, AttributeError) as exc:
            raise ConfigurationError(
                f"{where}: {place}: {type(exc).__name__}: {exc}; expected a task of {NAME} 0.1.1"
            ) from exc
    return found


def record(fields: Mapping[str, Any], library: str) -> dict[str, Any]:
    """One task in BigCodeBench's format. Raises KeyError, ValueError or SyntaxError for what is no task."""
    parts = fields["prompt_parts"]
    stub = parts["stub"].replace("{library_import}", IMPORTS[library])
    asked = fields["prompt"].replace("{library_import}", IMPORTS[library])
    opening = _opening(stub, fields["entry_point"])
    return {
        "task_id": fields["task_id"],
        "complete_prompt": opening + _docstring(parts["statement"]),
        "instruct_prompt": asked.replace("{library_instruction}", ASKS.format(library=library)),
        "canonical_solution": _body(fields["ground_truth"][library], stub, fields["entry_point"]),
        "code_prompt": opening,
        "test": fields["test_code"],
        "entry_point": fields["entry_point"],
        "libs": json.dumps([library, *fields["libs"]]),
        "seed_id": fields["seed_id"],
    }


def _opening(stub: str, entry_point: str) -> str:
    """The stub's imports, constants and signature, without the docstring."""
    function = _function(ast.parse(stub), entry_point)
    return _lines(stub, 1, function.body[0].lineno - 1).rstrip() + "\n"


def _docstring(statement: str) -> str:
    escaped = statement.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return textwrap.indent(f'"""{escaped}\n"""\n', INDENT)


def _body(program: str, stub: str, entry_point: str) -> str:
    """A program's last definition of the entry point as a body; what it needs from before is put inside.

    The references are whole programs: a function of BigCodeBench's, and one of the same name after it that
    hands lists and dicts to it in place of tables. What the stub has too stays outside, where a test may
    replace it.
    """
    module, has = ast.parse(program), _bindings(ast.parse(stub))
    function = _function(module, entry_point)
    has_docstring = len(function.body) > 1 and ast.get_docstring(function) is not None
    first = function.body[int(has_docstring)]
    needed = [
        _indented(_lines(program, node.lineno, node.end_lineno))
        for node in module.body[: module.body.index(function)]
        if not _bindings(ast.Module([node], [])) <= has
    ]
    return "".join([*needed, _lines(program, first.lineno, function.end_lineno)]).rstrip() + "\n"


def _bindings(module: ast.Module) -> set[str]:
    """Every name that is imported, with where from, and every other statement as it is."""
    found = set()
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            where = node.module if isinstance(node, ast.ImportFrom) else None
            found |= {f"{where} {alias.name} {alias.asname}" for alias in node.names}
        else:
            found.add(ast.dump(node))
    return found


def _function(module: ast.Module, name: str) -> ast.FunctionDef:
    """Raises ValueError where the module defines no such function."""
    found = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name]
    if not found:
        raise ValueError(f"it defines no {name}")
    return found[-1]


def _lines(text: str, first: int, last: int | None) -> str:
    return "".join(text.splitlines(keepends=True)[first - 1 : last])


def _indented(code: str) -> str:
    """All lines but those that begin inside a string. Raises SyntaxError for what is no Python."""
    inside: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.STRING:
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
    except tokenize.TokenError as exc:
        raise SyntaxError(str(exc)) from exc
    lines = code.splitlines(keepends=True)
    return "".join(
        line if number in inside or not line.strip() else INDENT + line
        for number, line in enumerate(lines, 1)
    )


def _text(where: Path, name: str) -> str:
    """A data file of the package, from its folder or its wheel."""
    try:
        if where.is_file():
            with zipfile.ZipFile(where) as wheel:
                member = wheel.getinfo(f"{NAME}/data/{name}")
                if member.file_size > LARGEST:
                    raise ConfigurationError(
                        f"{where}: {name} has {member.file_size:,} bytes; at most {LARGEST:,}"
                    )
                return wheel.read(member).decode()
        found = next(
            (each for folder in DATA_BELOW if (each := where / folder / name).is_file()), where / name
        )
        return found.read_text(encoding="utf-8")
    except (OSError, KeyError, zipfile.BadZipFile, UnicodeDecodeError) as exc:
        raise ConfigurationError(
            f"{where}: {name} of {NAME} cannot be read ({exc}); expected the wheel {NAME}-0.1.1-….whl, as"
            f" `pip download` fetches it, or the folder of the installed package"
        ) from exc
