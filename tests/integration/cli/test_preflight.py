"""What must hold before anything is started."""

import socket
import subprocess
import sys

import pytest

from services.cli.preflight import alone, check_port
from services.core.errors import ConfigurationError, StackError
from services.core.settings import PROJECT

HOLD = "import sys; from pathlib import Path; from services.cli.preflight import alone\n"
HOLD += "with alone(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def holder(tmp_path):
    """Another process that runs Ratchet in tmp_path."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_one_is_told_who_runs(tmp_path, holder):
    with pytest.raises(StackError, match=f"already runs .* \\(process {holder.pid}\\)"), alone(tmp_path):
        pytest.fail("two at once")


def test_a_killed_one_does_not_block_the_next(tmp_path, holder):
    """The kernel lets go of the lock: there is no stale lock file to remove by hand."""
    holder.kill()
    holder.wait()
    with alone(tmp_path):
        pass


def test_a_home_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StackError, match="RATCHET_HOME"), alone(tmp_path / "file"):
        pytest.fail("no such home")


def test_a_port_in_use_is_named_with_its_setting_and_its_user():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(
            ConfigurationError, match=f"METRICS_PORT={port} .* by process .* set METRICS_PORT"
        ):
            check_port("127.0.0.1", port)


def test_a_free_port_is_fine():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    check_port("127.0.0.1", port)
