"""BigCodeBench's style, in the cage: the unit tests run in the program's own process, and are watched.

The tests need the program's objects, so nothing here is out of its reach. What it may do to them is
watched from an audit hook, which cannot be taken out again, and from what `unittest` was before.
"""

import builtins
import os
import sys
import types
import unittest
from collections.abc import Iterator
from typing import Any

from services.sandbox.inside import frames
from services.sandbox.inside.frames import Message

CASES = "TestCases"  # BigCodeBench's name for the class; any other TestCase counts as well
FOREIGN = "<"  # file names of code that came as text begin with it
WATCHED = (
    "sys._getframe", "sys._current_frames", "sys.settrace", "sys.setprofile", "sys.addaudithook",
    "gc.get_objects", "gc.get_referrers", "gc.get_referents", "ctypes.dlopen", "ctypes.dlsym",
    "ctypes.call_function", "ctypes.string_at",
)  # fmt: skip
INSIDE = ("tb_frame", "gi_frame", "cr_frame", "ag_frame", "__code__")  # attributes that raise an audit event
TEXT = 300  # characters of a failure
_before: dict[str, Any] = {}


def prepare() -> None:
    """Remember what `unittest` and the builtins are, and begin to watch. Before the program is loaded."""
    _before.update(_state())
    getframe, channel, send, leave = sys._getframe, 3, frames.send, os._exit
    busy = False

    def watch(event: str, args: tuple[Any, ...]) -> None:
        nonlocal busy
        looked_at = event == "object.__getattr__" and args[1] in INSIDE
        if busy or not (looked_at or event in WATCHED):
            return
        busy = True
        caller = getframe(1).f_code.co_filename
        busy = False
        if caller.startswith(FOREIGN) and not caller.startswith("<frozen"):
            send(channel, {"flag": f"{event} {args[1] if looked_at else ''}".strip()})
            leave(1)

    sys.addaudithook(watch)


def _state() -> dict[str, Any]:
    """What a program could replace to have its tests pass, by name."""
    owners: list[Any] = [unittest.TestCase, unittest.TestResult, unittest.TestSuite, unittest.TestLoader]
    state = {f"{owner.__name__}.{name}": value for owner in owners for name, value in vars(owner).items()}
    state |= {f"unittest.{name}": value for name, value in vars(unittest.case).items()}
    state |= {name: value for name, value in vars(builtins).items() if name != "_"}
    return {**state, "sys.modules['unittest']": sys.modules.get("unittest")}


def _changed() -> str | None:
    """The name of something that is no longer what it was."""
    now = _state()
    return next((name for name, value in _before.items() if now.get(name) is not value), None)


def run(test: str, module: types.ModuleType) -> Iterator[Message]:
    """A message a test method, then one that says all are done; a flag where something was patched."""
    if (name := _changed()) is not None:
        yield {"flag": f"{name} was replaced", "done": True}
        return
    exec(compile(test, "<test>", "exec"), module.__dict__)
    cases = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, unittest.TestCase)
    ]
    for case in cases:
        for name in unittest.TestLoader().getTestCaseNames(case):
            yield _method(case, name)
            if (name := _changed() or "") != "":
                yield {"flag": f"{name} was replaced", "done": True}
                return
    yield {"done": True}


def _method(case: type[unittest.TestCase], name: str) -> Message:
    result = unittest.TestResult()
    unittest.TestSuite([case(name)]).run(result)
    wrong = [*result.errors, *result.failures]
    text = wrong[0][1].strip().splitlines()[-1][:TEXT] if wrong else ""
    ran = result.testsRun == 1 and not result.skipped
    return {"test": f"{case.__name__}.{name}", "passed": ran and result.wasSuccessful(), "text": text}
