"""HumanEval's style: the test defines `check(candidate)`, and runs here, where the program is not."""

import builtins
import types
from collections.abc import Callable, Iterator
from typing import Any

from services.sandbox.inside.channel import Channel

CHECK = "check"
Report = Callable[..., None]  # keywords: what is known so far of the outcome


def run(request: dict[str, Any], channel: Channel, _report: Report) -> None:
    """Returns when the program passes; raises what the test or the program raises otherwise."""
    code, entry = request["test"], request["entry_point"]
    channel.load(request["code"])
    names = namespace(request["context"], [code], [entry], channel)
    exec(compile(code, "<string>", "exec"), names)
    names[CHECK](channel.function(entry))


def namespace(context: str, tests: list[str], entries: list[str], channel: Channel) -> dict[str, Any]:
    """Where tests run: the context's names, and the program's functions by the names of theirs.

    A name that neither the context nor the test defines is taken for a function of the program's.
    """
    names: dict[str, Any] = {}
    exec(compile(context, "<context>", "exec"), names)
    used = (name for test in tests for name in global_names(compile(test, "<string>", "exec")))
    missing = [name for name in used if name not in names and not hasattr(builtins, name)]
    for name in [*missing, *entries]:
        names[name] = channel.function(name)
    return names


def global_names(code: types.CodeType) -> Iterator[str]:
    """Every name that the code, or a function in it, may look up outside of functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from global_names(constant)
