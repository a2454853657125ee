"""Which processes are ours."""

import os
import subprocess
import sys

import psutil
import pytest

from services.cli.stack import processes
from services.cli.stack.processes import MARKER, PART, PidFiles

SLEEP = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)",
]


@pytest.fixture
def start():
    """Start a process, wait until it runs, end it after the test."""
    started = []

    def start(command=SLEEP, **environment):
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE)
        process.stdout.readline()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_recorded_process_is_found(tmp_path, start):
    process = start()
    files = PidFiles(tmp_path)
    files.write("trainer", process.pid)
    found = files.read("trainer").process()
    assert found.pid == process.pid


def test_a_foreign_process_with_the_same_number_is_not_ours(tmp_path, start):
    """The number was given away again: the time of creation differs."""
    process = start()
    files = PidFiles(tmp_path)
    files.write("trainer", process.pid)
    path = files.directory / "trainer.pid"
    path.write_text(path.read_text().replace('"created": ', '"created": 1'))
    assert files.read("trainer").process() is None


def test_an_ended_process_is_not_found(tmp_path, start):
    process = start()
    files = PidFiles(tmp_path)
    files.write("trainer", process.pid)
    process.kill()  # and not waited for: a zombie
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert files.read("trainer").process() is None


@pytest.mark.parametrize("damage", ["", "12", "{}", '{"pid": null, "created": 1}', "{"])
def test_a_damaged_pid_file_names_nobody(tmp_path, damage):
    files = PidFiles(tmp_path)
    files.directory.mkdir()
    (files.directory / "trainer.pid").write_text(damage)
    assert files.read("trainer") is None
    assert files.all() == []


def test_a_process_is_ours_by_the_marker_it_inherited(tmp_path, start):
    """Grandchildren in sessions of their own are found too: they inherit the environment."""
    ours = start(**{MARKER: str(tmp_path), PART: "trainer"})
    start(**{MARKER: str(tmp_path / "other"), PART: "trainer"})
    start()
    assert [process.pid for process in processes.marked(tmp_path)] == [ours.pid]
    assert [process.pid for process in processes.marked(tmp_path, "trainer")] == [ours.pid]
    assert list(processes.marked(tmp_path, "metrics")) == []


def test_whoever_asks_is_spared(tmp_path, start):
    """A shell that has the marker, and a `ratchet down` run from it, are not what is looked for."""
    ask = "import sys; from pathlib import Path; from services.cli.stack import processes;"
    ask += "print([p.pid for p in processes.marked(Path(sys.argv[1]))])"
    environment = {**os.environ, MARKER: str(tmp_path)}
    command = [sys.executable, "-c", ask, str(tmp_path)]
    shell = ["/bin/sh", "-c", '"$@"; true', "sh", *command]
    assert subprocess.run(shell, env=environment, capture_output=True, check=True).stdout == b"[]\n"


def test_ending_is_gentle_first(start):
    process = start()
    assert processes.end([psutil.Process(process.pid)], patience=10) == []
    assert process.wait() == -15


def test_what_does_not_end_is_killed(start):
    process = start(STUBBORN)
    killed = processes.end([psutil.Process(process.pid)], patience=0.1)
    assert [one.pid for one in killed] == [process.pid]
    assert process.wait() == -9
