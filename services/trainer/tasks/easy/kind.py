"""A kind of task and its variants: what is asked, a body that is right, and inputs to try it with.

What the function is to give for an input is not written down: the body is run, once, when the task is
made. It is this package's own code.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

from services.trainer.suites.formats import Task

INDENT = " " * 4
Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Variant:
    """One function: its name, and what stands in the kind's text for `$says`, `$code` and others."""

    name: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class Kind:
    """Functions that are alike. A split never divides a kind."""

    name: str
    signature: str  # parameters and result: (x: int) -> int
    says: str  # the docstring's first line
    body: str  # an expression, or statements that end in `return`
    variants: tuple[Variant, ...]
    inputs: tuple[Arguments, ...]


def each(**variants: Any) -> tuple[Variant, ...]:
    """Variants by their functions' names; what each has in place of `$k`, or of several names."""
    return tuple(
        Variant(name, values if isinstance(values, dict) else {"k": str(values)})
        for name, values in variants.items()
    )


def either(**variants: tuple[str, str]) -> tuple[Variant, ...]:
    """Variants by their functions' names: what is asked in words, and the expression that is it."""
    return tuple(Variant(name, {"says": says, "code": code}) for name, (says, code) in variants.items())


def inputs(*values: Any) -> tuple[Arguments, ...]:
    """Of functions with one parameter."""
    return tuple((value,) for value in values)


def tasks(kinds: Iterable[Kind]) -> Iterator[tuple[Kind, Task]]:
    """The tasks of every variant, in order."""
    for kind in kinds:
        for number, variant in enumerate(kind.variants):
            yield kind, _task(kind, variant, f"easy/{kind.name}/{number}")


def _task(kind: Kind, variant: Variant, name: str) -> Task:
    says, code = (Template(text).substitute(variant.values) for text in (kind.says, kind.body))
    opening = f"def {variant.name}{kind.signature}:\n"
    solution = _body(code)
    function = _function(opening + solution, variant.name)
    cases = [(arguments, function(*arguments)) for arguments in kind.inputs]
    prompt = f"{opening}{INDENT}{_docstring(says, variant.name, _telling(cases))}"
    test = "".join(f"assert {_compared(variant.name, *case)}\n" for case in cases)
    return Task(name, prompt, None, prompt, solution, test, variant.name, "assert")


def _body(code: str) -> str:
    lines = code.strip().splitlines()
    if len(lines) == 1:
        lines = [f"return {lines[0]}"]
    return "".join(f"{INDENT}{line}\n" for line in lines)


def _function(program: str, name: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102 - written in this package
    function: Callable[..., Any] = names[name]
    return function


def _telling(cases: Sequence[tuple[Arguments, Any]]) -> list[tuple[Arguments, Any]]:
    """Two cases to show: the first, and the next that gives something else."""
    (_, result), *others = cases
    return [cases[0], next((case for case in others if case[1] != result), others[0])]


def _docstring(says: str, name: str, cases: Sequence[tuple[Arguments, Any]]) -> str:
    shown = "".join(
        f"{INDENT}>>> {name}({_arguments(arguments)})\n{INDENT}{result!r}\n" for arguments, result in cases
    )
    return f'"""{says}\n\n{shown}{INDENT}"""\n'


def _compared(name: str, arguments: Arguments, result: Any) -> str:
    call = f"{name}({_arguments(arguments)})"
    return f"abs({call} - {result!r}) < 1e-6" if _is_inexact(result) else f"{call} == {result!r}"


def _is_inexact(result: Any) -> bool:
    """A float that another order of operations may miss by its last digit."""
    return isinstance(result, float) and not math.isclose(result * 4, round(result * 4), rel_tol=0.0)


def _arguments(arguments: Arguments) -> str:
    return ", ".join(map(repr, arguments))
