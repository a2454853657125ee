"""Signals and parents."""

import signal
import subprocess
import sys
import time

import psutil

from services.core.settings import PROJECT

STORM = """
import sys
from services.core.process import StopSignal
stop = StopSignal()
print("ready", flush=True)
while not stop:
    stop.wait(0.0001)
stop.wait(0.001)
"""


def start(program: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", program], cwd=PROJECT, stdout=subprocess.PIPE, text=True)


def test_signals_in_any_number_at_any_moment_stop_a_waiting_process() -> None:
    """The handler never waits for a lock that the interrupted code holds."""
    for _ in range(5):
        process = start(STORM)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
        assert process.wait(60) in (
            0,
            -signal.SIGINT,
            -signal.SIGTERM,
        )


def test_a_signal_ends_a_long_wait() -> None:
    """Nobody sleeps through a stop."""
    process = start(STORM.replace("0.0001", "3600"))
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    assert process.wait(60) == 0


def test_a_child_dies_with_a_killed_parent() -> None:
    """kill -9 of the parent reaches the child as SIGTERM."""
    child = (
        "import os, time; from services.core.process import die_with_parent;"
        " die_with_parent(int(os.environ['PARENT'])); print(os.getpid(), flush=True); time.sleep(600)"
    )
    parent = start(
        f"import os, subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}],"
        " env={**os.environ, 'PARENT': str(os.getpid())}); time.sleep(600)"
    )
    assert parent.stdout is not None
    orphan = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs([orphan], 60)
    for process in alive:
        process.kill()
    assert alive == []
