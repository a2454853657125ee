"""Metadata guessed from the syntax of a problem's solution. Pure; nothing is run.

What is read off is certain: names, arguments, types, what is called. Algorithm and complexity are guesses by
rules of thumb: nesting of loops, calls of itself, sorting. A loop over a constant range counts as a loop.
"""

import ast
from collections.abc import Iterator

from services.trainer.suites.formats import Task

LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SORTS = frozenset({"sorted", "sort", "nsmallest", "nlargest"})
KINDS = {"list": "list", "dict": "dict", "set": "set", "tuple": "tuple", "deque": "deque", "Counter": "dict"}
GROWING = frozenset({"append", "add", "extend", "insert", "appendleft", "setdefault", "update"})


def derive(task: Task) -> dict[str, str]:
    """Annotations of a problem by name. Of a solution that is no Python, its name alone."""
    function = _function(task)
    if function is None:
        return {"function": task.entry_point}
    said = {
        "function": task.entry_point,
        "arguments": ", ".join(_arguments(function)) or "none",
        "returns": ast.unparse(function.returns) if function.returns else "",
        "algorithm": _algorithm(function),
        "time": _time(function),
        "space": _space(function),
        "structures": ", ".join(_structures(function)),
        "calls": ", ".join(_builtins(function)),
    }
    return {name: text for name, text in said.items() if text}


def _function(task: Task) -> ast.FunctionDef | None:
    try:
        tree = ast.parse(task.reference)
    except (SyntaxError, ValueError):
        return None
    named = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == task.entry_point
    ]
    return named[-1] if named else None


def _arguments(function: ast.FunctionDef) -> list[str]:
    taken = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [ast.unparse(one) for one in taken]


def _algorithm(function: ast.FunctionDef) -> str:
    depth = _depth(function)
    if _self_calls(function):
        return "recursion"
    if depth > 1:
        return "nested-loop"
    if any(_halves(node) for node in ast.walk(function) if isinstance(node, ast.While)):
        return "halving"
    if _sorts(function):
        return "sort"
    if any(isinstance(node, LOOPS) for node in ast.walk(function)):
        return "loop"
    return "comprehension" if depth else "direct"


def _time(function: ast.FunctionDef) -> str:
    depth = _depth(function)
    if calls := _self_calls(function):
        return "O(2^n)" if calls > 1 else _power(depth + 1)
    if depth == 1 and any(_halves(node) for node in ast.walk(function) if isinstance(node, ast.While)):
        return "O(log n)"
    if _sorts(function):
        return "O(n log n)" if depth < 2 else f"O(n^{depth} log n)"
    return _power(depth)


def _space(function: ast.FunctionDef) -> str:
    for node in ast.walk(function):
        if isinstance(node, COMPREHENSIONS[:3]):
            return "O(n)"
        if isinstance(node, ast.Call) and (_called(node) in SORTS or _called(node) in GROWING):
            return "O(n)"
    return "O(n)" if _self_calls(function) else "O(1)"


def _power(depth: int) -> str:
    return ("O(1)", "O(n)")[depth] if depth < 2 else f"O(n^{depth})"


def _depth(node: ast.AST) -> int:
    """How deep loops and comprehensions are nested."""
    own = len(node.generators) if isinstance(node, COMPREHENSIONS) else int(isinstance(node, LOOPS))
    return own + max((_depth(child) for child in ast.iter_child_nodes(node)), default=0)


def _self_calls(function: ast.FunctionDef) -> int:
    """Calls of itself, or of functions inside it by themselves."""
    inner = [node for node in ast.walk(function) if isinstance(node, ast.FunctionDef)]
    return max(
        sum(isinstance(node, ast.Call) and _called(node) == one.name for node in ast.walk(one))
        for one in inner
    )


def _halves(loop: ast.AST) -> bool:
    """Whether a loop divides a number as it goes on: by `//=`, `/=` or `>>=`."""
    return any(
        isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.FloorDiv, ast.Div, ast.RShift))
        for node in ast.walk(loop)
    )


def _sorts(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Call) and _called(node) in SORTS for node in ast.walk(function))


def _structures(function: ast.FunctionDef) -> list[str]:
    return sorted(set(_built(function)))


def _built(function: ast.FunctionDef) -> Iterator[str]:
    literal = {
        ast.List: "list", ast.ListComp: "list", ast.Dict: "dict", ast.DictComp: "dict",
        ast.Set: "set", ast.SetComp: "set",
    }  # fmt: skip
    for statement in function.body:
        for node in ast.walk(statement):
            if (kind := literal.get(type(node))) is not None:
                yield kind
            elif isinstance(node, ast.Call) and _called(node) in KINDS:
                yield KINDS[_called(node)]


def _builtins(function: ast.FunctionDef) -> list[str]:
    """Names called, in the order of the text, without methods and itself."""
    names = [
        node.func.id
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id != function.name
    ]
    return sorted(set(names))


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""
