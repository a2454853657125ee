"""Python code with other names for its parameters and local variables; it does the same as before.

Renamed are names that throughout one outermost function, the functions in it included, mean parameters or
local variables and nothing else, and that are written as plain names only. Never renamed: attributes,
imports, functions, classes, anything global, what an f-string or a string mentions by code, parameters
that are passed by keyword somewhere in the file, and all names of a function that looks its names up by
text (`locals()`, `eval`).
"""

import ast
import builtins
import keyword
import random
import re
import symtable
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from services.trainer.samples.source import SampleSource, Unit

NAMES = (  # what a variable becomes
    "value item data result entry element current target origin amount index offset size total number token"
    " part chunk block record field key label text line word symbol node branch leaf root parent child left"
    " right first last state status flag mode option choice limit bound width height depth weight rate ratio"
    " factor step phase stage level rank order group batch bucket queue stack pool cache buffer stream source"
    " sink reader writer handler worker task job event signal message packet request response reply answer"
    " query match pattern rule policy plan goal score cost price count"
)
LOOKUPS = frozenset({"locals", "vars", "eval", "exec", "dir", "globals", "compile"})
WORD = re.compile(r"\w+")
WORDS = frozenset({*dir(builtins), *keyword.kwlist, *keyword.softkwlist})  # no variable becomes one of these
KEPT = frozenset({"self", "cls", "_"})
Function = ast.FunctionDef | ast.AsyncFunctionDef
NAMED = Function | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar  # by text, without a place


class Edit(NamedTuple):
    """A name in the UTF-8 text, and what it becomes."""

    start_byte: int
    old: str
    new: str


def renamed(content: SampleSource, random_: random.Random) -> SampleSource | None:
    """The content with its names changed; None when it is not Python, does not parse or has none to change.

    Units move with the text; the lines stay.
    """
    if content.language != "python":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(content.text)
            table = symtable.symtable(content.text, "content", "exec")
            edits = _edits(content.text, tree, table, random_)
            text = _apply(content.text, edits)
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not edits:
        return None
    return replace(content, text=text, units=tuple(_moved(content, edits)))


def _edits(text: str, tree: ast.Module, table: symtable.SymbolTable, random_: random.Random) -> list[Edit]:
    taken = WORDS.union(WORD.findall(text))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.keywords]
    by_keyword = {each.arg for call in calls for each in call.keywords if each.arg}
    unpacked_into = {_called(call) for call in calls if any(each.arg is None for each in call.keywords)}
    starts = list(accumulate((len(line.encode()) for line in text.splitlines(keepends=True)), initial=0))
    if len(starts) - 1 != text.count("\n") + (not text.endswith("\n")):
        return []  # lines that Python counts otherwise: form feeds, separators
    scopes = {(scope.get_name(), scope.get_lineno()): scope for scope in _functions(table)}
    edits = []
    for function in _outermost(tree):
        scope = scopes.get((function.name, function.lineno)) or scopes.get(
            (function.name, min([function.lineno, *(d.lineno for d in function.decorator_list)]))
        )
        if scope is None:
            continue
        nodes = list(_inside(function))
        names = _renameable(function, nodes, scope, by_keyword, unpacked_into)
        fresh = [name for name in NAMES.split() if name not in taken]
        random_.shuffle(fresh)
        becomes = dict(zip(sorted(names), fresh, strict=False))
        for node in nodes:
            name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else None
            if name in becomes:
                assert isinstance(node, ast.Name | ast.arg)
                edits.append(Edit(starts[node.lineno - 1] + node.col_offset, name, becomes[name]))
    return sorted(edits)


def _renameable(
    function: Function,
    nodes: Sequence[ast.AST],
    scope: symtable.SymbolTable,
    by_keyword: set[str],
    unpacked_into: set[str],
) -> set[str]:
    """The names of the function that may become others."""
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    if names & LOOKUPS or getattr(function, "type_params", None):
        return set()
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    functions = [function, *(node for node in nodes if isinstance(node, Function))]
    if unpacked_into & {each.name for each in functions}:
        names -= parameters
    else:
        names |= parameters - by_keyword
    names -= parameters & by_keyword
    ours: set[str] = set()
    others: set[str] = set()
    for each in _scopes(scope):
        for symbol in each.get_symbols():
            is_ours = symbol.is_local() or symbol.is_free()
            if each.get_type() == "class" or not is_ours or symbol.is_imported() or symbol.is_namespace():
                others.add(symbol.get_name())
            else:
                ours.add(symbol.get_name())
    return {
        name
        for name in (names & ours) - others - KEPT - _named_otherwise(function, nodes)
        if not name.startswith("__") and name.isascii()
    }


def _named_otherwise(function: Function, nodes: Sequence[ast.AST]) -> set[str]:
    """Names that also stand where the tree has no place for them, or inside an f-string."""
    found: set[str] = {function.name}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            found |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
            found |= {inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)}
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, NAMED) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
    return found


def _inside(function: Function) -> Iterator[ast.AST]:
    """The nodes that are evaluated in the function: not its decorators, defaults and annotations."""
    arguments = function.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (one for one in (arguments.vararg, arguments.kwarg) if one is not None)
    for statement in function.body:
        yield from ast.walk(statement)


def _outermost(tree: ast.AST) -> Iterator[Function]:
    """Functions and methods that are in no other function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        else:
            yield from _outermost(node)


def _functions(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        if child.get_type() == "function":
            yield child
        else:
            yield from _functions(child)


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def _called(call: ast.Call) -> str:
    function = call.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _apply(text: str, edits: Sequence[Edit]) -> str:
    data = text.encode()
    parts, at = [], 0
    for start, old, new in edits:
        end = start + len(old)
        if data[start:end] != old.encode():
            raise ValueError(f"{old} is not at byte {start}")
        parts += [data[at:start], new.encode()]
        at = end
    return b"".join([*parts, data[at:]]).decode()


def _moved(content: SampleSource, edits: Sequence[Edit]) -> Iterator[Unit]:
    starts = [edit.start_byte for edit in edits]
    growth = list(accumulate((len(edit.new) - len(edit.old) for edit in edits), initial=0))

    def moved(byte: int) -> int:
        return byte + growth[bisect_left(starts, byte)]

    for unit in content.units:
        yield unit._replace(
            start_byte=moved(unit.start_byte),
            end_byte=moved(unit.end_byte),
            comment_byte=moved(unit.comment_byte),
        )
