"""What must hold before anything is started."""

import shutil
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from services.cli.stack.preflight import alone, check_port, check_room
from services.core.errors import ConfigurationError, StackError
from services.core.settings import PROJECT

HOLD = "import sys; from pathlib import Path; from services.cli.stack.preflight import alone\n"
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


def test_a_full_disk_is_said_with_what_is_free(tmp_path, monkeypatch):
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10**9, 99 * 10**7, 10**7)
    )
    with pytest.raises(StackError, match=f"RATCHET_HOME={tmp_path}: 10 MB are free there"):
        check_room(tmp_path)


def test_a_disk_with_room_is_no_matter(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=10**10))
    check_room(tmp_path)
