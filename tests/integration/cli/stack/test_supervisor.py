"""The supervisor over real processes: it starts them again, stops them in order, leaves none behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from services.cli.stack import supervisor as supervising
from services.cli.stack import sweep as sweeping
from services.cli.stack.processes import MARKER, PART, PidFiles, marked
from services.cli.stack.supervisor import Part, Supervisor
from services.core.errors import StackError
from services.core.settings import PROJECT

TIMEOUT = 60  # seconds until a test that waits gives up
GOOD = """
import os, signal, sys, time
from pathlib import Path
from services.core.process import die_with_parent
die_with_parent(int(os.environ["RATCHET_PARENT_PID"]))
name, told = sys.argv[1], Path(sys.argv[2])
def stop(*_):
    with told.open("a") as file: file.write(name + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
time.sleep(600)
"""
DEAF = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", sys.argv[1]], start_new_session=True)
print("ready", flush=True)
time.sleep(600)
"""
CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
CRASHING = "print('cannot open the door', flush=True); raise SystemExit(3)"
SUPERVISE = """
import json, os, sys, time
from pathlib import Path
from services.cli.stack.supervisor import Part, Supervisor
home = Path(sys.argv[1])
supervisor = Supervisor(home, print)
parts = [
    Part(name, command, dict(os.environ), home / f"{name}.log")
    for name, command in json.loads(sys.argv[2])
]
supervisor.start(parts)
print("started", flush=True)
while True:
    supervisor.watch()
    time.sleep(0.05)
"""


def wait_until(condition, timeout=TIMEOUT):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def python(code, *arguments):
    return [sys.executable, "-c", code, *map(str, arguments)]


def is_ready(home, *names):
    return all(
        (home / f"{name}.log").exists() and "ready" in (home / f"{name}.log").read_text() for name in names
    )


@pytest.fixture
def home(tmp_path):
    """A home of its own; whatever a failing test leaves there is killed."""
    yield tmp_path
    for process in marked(tmp_path):
        process.kill()


@pytest.fixture
def make(home):
    """`make(name=code, …)`: a started supervisor over these parts, and what it says."""
    said, supervisors = [], []

    def make(patience=10.0, **codes):
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        parts = [
            Part(name, python(code, name, home / "stopped"), environment, home / f"{name}.log", patience)
            for name, code in codes.items()
        ]
        supervisor = Supervisor(home, said.append)
        supervisors.append(supervisor)
        supervisor.start(parts)
        return supervisor, said

    yield make
    for supervisor in supervisors:
        supervisor.stop()


def test_parts_stop_in_good_order_and_nothing_stays(home, make):
    supervisor, _ = make(processor=GOOD, trainer=GOOD, metrics=GOOD)
    wait_until(lambda: is_ready(home, "processor", "trainer", "metrics"))
    assert {record.name for record in PidFiles(home).all()} == {"processor", "trainer", "metrics"}
    supervisor.stop()
    assert sorted((home / "stopped").read_text().split()) == ["metrics", "processor", "trainer"]
    assert list(marked(home)) == []
    assert PidFiles(home).all() == []


def test_a_killed_part_is_started_again_and_that_is_said(home, make, monkeypatch):
    monkeypatch.setattr(supervising, "BACKOFF_FIRST", 0.05)
    supervisor, said = make(trainer=GOOD)
    wait_until(lambda: is_ready(home, "trainer"))
    first = PidFiles(home).read("trainer").pid
    os.kill(first, signal.SIGKILL)

    def is_back():
        supervisor.watch()
        record = PidFiles(home).read("trainer")
        return record is not None and record.pid != first

    wait_until(is_back)
    assert supervisor.restarts["trainer"] == 1
    assert said[0].startswith("trainer was killed by signal 9")


def test_the_reason_a_part_gave_is_repeated(home, make):
    """The last line of its log says why it cannot start; nobody has to open the log for it."""
    supervisor, said = make(metrics=CRASHING)

    def is_told():
        supervisor.watch()
        return said

    wait_until(is_told)
    assert said == ["metrics stopped with exit status 3: cannot open the door; again in 1 s"]


def test_what_a_crashed_part_leaves_behind_is_ended_before_it_starts_again(home, make, monkeypatch):
    """A training process must not go on beside its successor, even in a session of its own."""
    monkeypatch.setattr(supervising, "BACKOFF_FIRST", 0.05)
    monkeypatch.setattr(supervising, "LEFTOVER_PATIENCE", 0.1)
    code = f"import sys; sys.argv[1] = {CHILD!r}\n" + DEAF
    supervisor, _ = make(trainer=code, patience=0.1)
    wait_until(lambda: is_ready(home, "trainer"))
    wait_until(lambda: len(list(marked(home, "trainer"))) == 2)
    former = {process.pid for process in marked(home, "trainer")}
    os.kill(PidFiles(home).read("trainer").pid, signal.SIGKILL)

    def is_replaced():
        supervisor.watch()
        now = {process.pid for process in marked(home, "trainer")}
        return len(now) == 2 and now.isdisjoint(former)

    wait_until(is_replaced)


def test_a_part_that_does_not_stop_is_killed_with_all_its_children(home, make):
    code = f"import sys; sys.argv[1] = {CHILD!r}\n" + DEAF
    supervisor, said = make(trainer=code, patience=0.2)
    wait_until(lambda: is_ready(home, "trainer"))
    wait_until(lambda: len(list(marked(home, "trainer"))) == 2)
    supervisor.stop()
    assert said == ["trainer did not stop in 0 s: killed"]
    assert list(marked(home)) == []


def test_the_wait_before_a_restart_doubles_up_to_half_a_minute():
    assert [supervising.backoff(crashes) for crashes in (1, 2, 3, 5, 6, 60)] == [1, 2, 4, 16, 30, 30]


def test_crashes_are_forgiven_after_a_steady_minute():
    run = supervising.Run("trainer", started=0.0)
    assert [run.crashed(now) for now in (1.0, 2.0, 3.0)] == [1, 2, 4]
    run.restarted(10.0)
    assert run.crashed(10.0 + supervising.STEADY + 1) == 1


def supervise(home, *names, code=GOOD):
    commands = [(name, python(code, name, home / "stopped")) for name in names]
    process = subprocess.Popen(
        python(SUPERVISE, home, json.dumps(commands)), cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "started\n"
    process.stdout.close()
    return process


def test_when_the_supervisor_is_killed_the_parts_stop_by_themselves(home):
    """The kernel tells them: no sweep is needed for parts that listen."""
    supervisor = supervise(home, "processor", "metrics")
    wait_until(lambda: is_ready(home, "processor", "metrics"))
    supervisor.kill()
    supervisor.wait()
    wait_until(lambda: list(marked(home)) == [])
    assert sorted((home / "stopped").read_text().split()) == ["metrics", "processor"]


def test_a_sweep_ends_what_a_killed_supervisor_left(home, monkeypatch):
    """Deaf parts and their children in other sessions: all of it, and nothing else."""
    monkeypatch.setattr(sweeping, "PATIENCE", 0.2)
    foreign = subprocess.Popen(python(CHILD), env={**os.environ, MARKER: "/another/home", PART: "trainer"})
    supervisor = supervise(home, "trainer", code=f"import sys; sys.argv[1] = {CHILD!r}\n" + DEAF)
    wait_until(lambda: is_ready(home, "trainer"))
    wait_until(lambda: len(list(marked(home))) == 2)
    supervisor.kill()
    supervisor.wait()
    left = sweeping.sweep(home)
    assert len(left) == 2
    assert list(marked(home)) == []
    assert PidFiles(home).all() == []
    assert foreign.poll() is None
    foreign.kill()
    foreign.wait()


def test_a_sweep_spares_a_foreign_process_that_got_the_number(home):
    """The pid file's time of creation is not the process's: it is left alone, the file is forgotten."""
    foreign = subprocess.Popen(python(CHILD))
    created = psutil.Process(foreign.pid).create_time() - 3600
    (home / "run").mkdir()
    Path(home / "run" / "postgres.pid").write_text(json.dumps({"pid": foreign.pid, "created": created}))
    assert sweeping.sweep(home) == []
    assert foreign.poll() is None
    assert PidFiles(home).all() == []
    foreign.kill()
    foreign.wait()


class FakeServer:
    """A server that refuses to start the first time."""

    def __init__(self, when_stopped=lambda: None):
        self.pid = os.getpid()
        self.starts = 0
        self.when_stopped = when_stopped

    def start(self):
        self.starts += 1
        if self.starts == 1:
            raise StackError("no room")
        self.pid = os.getpid()

    def stop(self):
        self.when_stopped()
        self.pid = None


def test_the_database_server_stops_when_no_part_needs_it_any_more(home):
    alive = []
    supervisor = Supervisor(home, print, FakeServer(lambda: alive.append(list(marked(home)))))
    supervisor.start(
        [Part("processor", python(GOOD, "processor", home / "stopped"), os.environ, home / "log")]
    )
    supervisor.stop()
    assert alive == [[]]


def test_a_database_server_that_dies_is_started_again_until_it_runs(home, monkeypatch):
    monkeypatch.setattr(supervising, "BACKOFF_FIRST", 0.01)
    server, said = FakeServer(), []
    supervisor = Supervisor(home, said.append, server)
    server.pid = None

    def is_back():
        supervisor.watch()
        return server.pid

    wait_until(is_back)
    supervisor.stop()
    assert [line.split(";")[0].split(" (")[0] for line in said] == [
        "postgres stopped",
        "postgres does not start: no room",
        "postgres runs again",
    ]
