"""The checker's end of the line to a program: each call a message, each answer a plain value or a fault.

A fault is no exception that a test could expect: it is raised past `except Exception` and kept, so that
the program fails even where the test swallows it.
"""

import builtins
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from services.sandbox.inside import frames, limits
from services.sandbox.inside.frames import FrameError, Message, OutOfTimeError
from services.sandbox.inside.values import NotPlainError, decode, encode

STARTING = 20.0  # seconds that a cage may take before its program is handed over


class FaultError(BaseException):
    """The program broke the rules of the line; the message says how. `lost`: nothing more can be asked."""

    def __init__(self, why: str, *, lost: bool = True) -> None:
        super().__init__(why)
        self.lost = lost


class ProgramError(Exception):
    """An exception of the program's that cannot be made again here."""


class Channel:
    """Asks one program. `fault` is what was first wrong with its answers, None as long as nothing was."""

    def __init__(self, fd: int, seconds: float) -> None:
        """Waits for the cage; the program's `seconds` of processor time begin when it is ready.

        Raises OutOfTimeError or FaultError when it does not come up, which is no fault of the program.
        """
        self.fault: FaultError | OutOfTimeError | None = None
        self._fd = fd
        self._due = self._deadline = time.monotonic() + STARTING
        self._receive()
        self._due = time.monotonic() + seconds
        self._deadline = time.monotonic() + limits.by_the_clock(seconds)

    def load(self, code: str) -> None:
        """Run the program's own statements. Raises what they raise."""
        self._value(self._ask({"load": code}), [])

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the program's function returns, in plain values.

        Arguments are copies. What the function did to them comes back when it returns None, as one that
        works in place does, and not otherwise: no answer is given by changing the question.
        """
        given = list(args)
        try:
            asked = {"call": name, "args": encode(given), "kwargs": encode(kwargs)}
        except NotPlainError as exc:
            raise TypeError(f"an argument of type {exc} cannot be handed to a program in a sandbox") from exc
        return self._value(self._ask(asked), given)

    def suite(self, test: str) -> Iterator[Message]:
        """What the program's cage reports while it runs the unit tests, message by message."""
        request = self._send({"suite": test})
        while True:
            reply = self._reply(request)
            yield reply
            if reply.get("done"):
                return

    def function(self, name: str) -> Callable[..., Any]:
        """The program's function of this name, as something to be called."""

        def candidate(*args: Any, **kwargs: Any) -> Any:
            return self.call(name, args, kwargs)

        candidate.__name__ = candidate.__qualname__ = name
        return candidate

    def _ask(self, asked: Message) -> Message:
        return self._reply(self._send(asked))

    def _send(self, asked: Message) -> str:
        """The request's number, which an answer must repeat and nobody can know before it is asked."""
        request = os.urandom(16).hex()
        try:
            frames.send(self._fd, {"id": request, **asked})
        except FrameError as exc:
            raise ValueError(f"the arguments are too large for one message: {exc}") from exc
        except OSError as exc:
            raise self._ended("the program ended before it was asked") from exc
        return request

    def _reply(self, request: str) -> Message:
        reply = self._receive()
        if reply.get("id") != request:
            raise self._faulty("the program answered what it was not asked")
        return reply

    def _receive(self) -> Message:
        try:
            reply = frames.receive(self._fd, self._deadline)
        except FrameError as exc:
            raise self._faulty(f"the program sent what is no answer: {exc}") from exc
        except OutOfTimeError as exc:
            raise self._late() from exc
        if reply is None:
            raise self._ended("the program ended before it answered")
        if "late" in reply:
            raise self._late()
        if "flag" in reply:
            raise self._faulty(f"flagged: {str(reply['flag'])[:200]}")
        return reply

    def _value(self, reply: Message, given: list[Any]) -> Any:
        if "raised" in reply:
            raise self._exception(reply)
        if "refused" in reply:
            why = (
                f"the program returned a value of type {str(reply['refused'])[:100]}; only plain values count"
            )
            raise self._faulty(why, lost=False)
        try:
            value = decode(reply["value"])
            if value is None and "args" in reply:
                _write_back(given, decode(reply["args"]))
        except (ValueError, KeyError, RecursionError) as exc:
            raise self._faulty(f"the program's answer is no plain value: {exc}") from exc
        return value

    def _exception(self, reply: Message) -> BaseException:
        """The nearest built-in exception of the one that the program raised."""
        kinds, text = reply["raised"], reply.get("text")
        if type(kinds) is not list or type(text) is not str:
            raise self._faulty("the program's answer is no exception")
        for name in kinds:
            kind = getattr(builtins, name, None) if type(name) is str else None
            if isinstance(kind, type) and issubclass(kind, BaseException):
                try:
                    return kind(*decode(reply["args"]))
                except (TypeError, ValueError, RecursionError):
                    return kind(text) if kind in (Exception, RuntimeError) else ProgramError(text)
        return ProgramError(text)

    def _ended(self, why: str) -> FaultError | OutOfTimeError:
        """One that has had its time was ended by the kernel, which counts processor time as well."""
        return self._faulty(why) if time.monotonic() < self._due else self._late()

    def _late(self) -> OutOfTimeError:
        late = OutOfTimeError()
        self.fault = self.fault or late
        return late

    def _faulty(self, why: str, *, lost: bool = True) -> FaultError:
        fault = FaultError(why, lost=lost)
        self.fault = self.fault or fault
        return fault


def _write_back(given: list[Any], after: Any) -> None:
    """Give the caller's lists, sets and dicts the contents that the program left in its copies."""
    if type(after) is not list or len(after) != len(given):
        raise ValueError("not the arguments it was given")
    for mine, now in zip(given, after, strict=True):
        if type(mine) is not type(now):
            continue
        if type(mine) is list:
            mine[:] = now
        elif type(mine) in (set, dict):
            mine.clear()
            mine.update(now)
