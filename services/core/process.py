"""What a process owes its parent, its signals and the crash tests."""

import ctypes
import os
import select
import signal
import sys
from types import FrameType

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
# How often a thread of OpenMP (libgomp, as torch has it) looks for work before it sleeps. By default it looks
# for milliseconds, on the core that another process needs: two trainings on two cores then run at a tenth of
# the speed of one. Measured with 2,000: half each, and alone 5 to 19 % slower than with the default.
SHARES_CORES = {"GOMP_SPINCOUNT": "2000"}
# Looked up here, once: between fork and exec of a process with threads no loader's lock may be taken
_prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def die_with_parent(parent_pid: int, signal_number: int = signal.SIGTERM) -> None:
    """Have the kernel send `signal_number` to this process when its parent dies, however it dies.

    Call it first thing in the child, with the parent's pid as the parent knows it: if the parent
    is gone already the signal is delivered at once. Linux only; elsewhere it does nothing.
    """
    if _prctl is None:
        return
    _prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal_number)


class StopSignal:
    """True once SIGTERM or SIGINT has come; `wait` sleeps until then or for so many seconds.

    The handler takes no lock: it may interrupt the very thread that holds it (threading.Event's own
    lock deadlocks so). A byte in a pipe that nobody reads wakes every waiter instead.
    """

    def __init__(self) -> None:
        self._received = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._receive)

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        if not self._received:
            self._received = True
            os.write(self._writer, b"\0")

    def __bool__(self) -> bool:
        return self._received

    def wait(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        poll.poll(max(0.0, seconds) * 1000)  # milliseconds
        return self._received


def failpoint(name: str) -> None:
    """Die here, as by kill -9, when the environment's RATCHET_FAILPOINT names this point.

    The crash tests use it to prove that a kill at this very line loses nothing.
    """
    if os.environ.get("RATCHET_FAILPOINT") == name:
        os.kill(os.getpid(), signal.SIGKILL)
