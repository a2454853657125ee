"""The command line itself."""

import os
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from services.cli.main import app


def ratchet(*arguments, **environment):
    command = [sys.executable, "-m", "services.cli.main", *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_help_needs_none_of_the_heavy_imports():
    """`ratchet --help` is instant because nothing but typer is imported for it."""
    code = "import sys, services.cli.main; print(*sys.modules)"
    imported = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"torch", "pydantic", "psycopg2", "flask", "rich", "psutil"}.isdisjoint(imported)


@pytest.mark.parametrize("command", get_command(app).commands)
def test_every_command_is_in_the_help(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f" {command} " in CliRunner().invoke(app, ["--help"]).output


def test_an_error_is_one_line_and_exit_status_1(tmp_path):
    """No traceback for what Ratchet refuses on purpose."""
    done = ratchet("status", RATCHET_HOME=str(tmp_path), MIN_NEW_FILES="many")
    assert done.returncode == 1
    assert done.stderr.startswith("ratchet: MIN_NEW_FILES='many'")
    assert len(done.stderr.splitlines()) == 1


def test_debug_shows_where_an_error_comes_from(tmp_path):
    done = ratchet("--debug", "status", RATCHET_HOME=str(tmp_path), MIN_NEW_FILES="many")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_down_where_nothing_ever_ran_says_so_and_leaves_nothing(tmp_path):
    done = ratchet("down", RATCHET_HOME=str(tmp_path / "home"))
    assert (done.returncode, done.stdout) == (0, "nothing was running\n")
    assert not (tmp_path / "home").exists()


def test_logs_of_a_service_that_is_none_are_refused(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "trainer.log").write_text("one\ntwo\nthree\n")
    environment = {"RATCHET_HOME": str(tmp_path)}
    assert "there are trainer" in ratchet("logs", "trader", **environment).stderr
    assert ratchet("logs", "trainer", "-n", "2", **environment).stdout == "two\nthree\n"


def test_explaining_what_is_nowhere_is_one_line(tmp_path):
    """It names the path, its control characters escaped."""
    done = ratchet("explain", "no\x1b[2Jsuch.py", RATCHET_HOME=str(tmp_path), INGEST_DIR=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith(r"ratchet: no\x1b[2Jsuch.py: no such file")
    assert len(done.stderr.splitlines()) == 1
