"""Assertions after a program, each a test: run by the checker where it can, beside the program else."""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from services.sandbox.inside import check, flags
from services.sandbox.inside.channel import Channel, FaultError
from services.sandbox.inside.check import Report
from services.sandbox.inside.frames import OutOfTimeError


@dataclass(frozen=True)
class Statement:
    source: str
    is_test: bool  # it asserts something
    here: bool  # the checker can run it
    beside: bool  # the program's cage must run it, or may have to for a later one's sake


def run(request: dict[str, Any], channel: Channel, report: Report) -> None:
    """Runs all statements, whatever fails; then raises what the first that failed raised.

    Raises ValueError when none asserts anything, FaultError for a program that must be beside its
    tests and reaches for them.
    """
    found = list(statements(request["test"]))
    total = sum(statement.is_test for statement in found)
    report(tests=total, tests_passed=0)
    if not total:
        raise ValueError("the test has no assert statement")
    if any(not statement.here for statement in found):
        flags.refuse(request["code"])
    channel.load(request["code"])
    names = check.namespace(request["context"], [one.source for one in found if one.here], [], channel)
    passed, first = 0, None
    for statement in found:
        try:
            _run(statement, names, channel)
            passed += statement.is_test
            report(tests_passed=passed)
        except OutOfTimeError:
            raise
        except BaseException as exc:
            if isinstance(exc, FaultError) and exc.lost:
                raise
            first = first or exc
    if first is not None:
        raise first


def _run(statement: Statement, names: dict[str, Any], channel: Channel) -> None:
    if statement.here:
        exec(compile(statement.source, "<string>", "exec"), names)
    if statement.beside:
        channel.load(statement.source)


def statements(test: str) -> Iterator[Statement]:
    """The test's statements in order. Raises SyntaxError when it is no Python.

    The checker runs a statement itself when the program's names only occur as functions that are called
    and what they return is only compared, passed on or indexed; a method of a result, or a class of the
    program's, wants the object, which stays in the cage.
    """
    known, distant = set(dir(builtins)), set[str]()
    module = ast.parse(test)
    objects = {_name(part.value) for part in ast.walk(module) if isinstance(part, ast.Attribute)}
    for node in module.body:
        made = set(_names_made(node))
        foreign = set(_names_used(node)) - known - made
        here = not foreign & distant and _only_called(node, foreign) and not (foreign and made & objects)
        known |= made
        if not here:
            distant |= made
            known -= made
        setup = not any(isinstance(part, ast.Assert) for part in ast.walk(node))
        yield Statement(ast.unparse(node), not setup, here, not here or (setup and not foreign))


def _only_called(node: ast.stmt, foreign: set[str]) -> bool:
    parts = list(ast.walk(node))
    calls = [part for part in parts if isinstance(part, ast.Call) and _name(part.func) in foreign]
    uses = [part for part in parts if _name(part) in foreign]
    inside = [part.value for part in parts if isinstance(part, ast.Attribute)]
    return len(calls) == len(uses) and not any(call in inside for call in calls)


def _name(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None


def _names_used(node: ast.stmt) -> Iterator[str]:
    return filter(None, map(_name, ast.walk(node)))


def _names_made(node: ast.stmt) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part.id
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield part.name
        elif isinstance(part, ast.arg):
            yield part.arg
        elif isinstance(part, ast.alias):
            yield (part.asname or part.name).partition(".")[0]
        elif isinstance(part, ast.ExceptHandler) and part.name:
            yield part.name
