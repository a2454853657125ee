"""Why a task cannot be used, as far as can be said without running it. Pure."""

import ast
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

from services.trainer.suites.formats import Task
from services.trainer.tasks import near
from services.trainer.tasks.placed import PlacedTask

ASSERTION = "assert"  # also as the beginning of unittest's methods: assertEqual, assert_called_once, …
RAISES = ("raises", "fail")


def screen(tasks: Sequence[PlacedTask], benchmarks: Sequence[Task]) -> list[PlacedTask]:
    """The tasks of a set in order, with why some are left out. benchmarks: what nothing is trained on."""
    tasks = [_with_test(each) for each in tasks]
    of_benchmarks = near.finder(benchmarks)
    of_test_split = near.finder([each.task for each in tasks if each.split == "test"])
    return [_apart(each, of_benchmarks, of_test_split) for each in tasks]


def asserts(test: str) -> int:
    """How many assertions stand in a test. Raises SyntaxError where it is no Python."""
    return sum(map(_is_assertion, ast.walk(parsed(test))))


def _with_test(each: PlacedTask) -> PlacedTask:
    if each.excluded is not None:
        return each
    try:
        tested = any(map(_is_assertion, ast.walk(parsed(each.task.test))))
    except SyntaxError as exc:
        return replace(each, excluded=f"its test is no Python ({exc.msg}, line {exc.lineno})")
    return each if tested else replace(each, excluded="its test asserts nothing")


def _apart(
    each: PlacedTask, of_benchmarks: Callable[[Task], Task | None], of_test: Callable[[Task], Task | None]
) -> PlacedTask:
    """What is learned from is apart from what is judged by."""
    if each.excluded is not None or each.split == "test":
        return each
    if (found := of_benchmarks(each.task)) is not None:
        return replace(each, excluded=f"a benchmark's, never trained on ({found.name})")
    if (found := of_test(each.task)) is not None:
        return replace(each, excluded=f"asks what a task of the test split asks ({found.name})")
    return each


def parsed(test: str) -> ast.Module:
    """Raises SyntaxError where it is no Python."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes in its texts
            return ast.parse(test)
    except (ValueError, RecursionError, MemoryError) as exc:
        raise SyntaxError(str(exc)) from exc


def _is_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name.startswith(ASSERTION) or name in RAISES
