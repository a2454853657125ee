"""The command line itself."""

import os
import subprocess
import sys
import tomllib

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from services.cli.main import app
from services.core.settings import PROJECT

COMMANDS = get_command(app).commands
GROUPS = [name for name, command in COMMANDS.items() if hasattr(command, "commands")]
EVERY = [
    words
    for name, command in COMMANDS.items()
    for words in ([name], *([name, inner] for inner in getattr(command, "commands", ())))
]


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


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_help(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f" {command} " in CliRunner().invoke(app, ["--help"]).output


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_the_help_of_a_command_ends_with_an_example_of_it(words):
    examples = (
        CliRunner().invoke(app, [*words, "--help"], prog_name="ratchet").output.partition("Examples:")[2]
    )
    assert f"ratchet {' '.join(words)}" in examples


def test_a_summary_is_whole_on_a_terminal_of_80_columns():
    """One that is cut off says nothing to a newcomer."""
    told = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).output
    assert max(map(len, told.splitlines())) <= 80
    assert "..." not in told.partition("Start here")[2]


@pytest.mark.parametrize("group", GROUPS)
def test_a_summary_in_a_group_is_whole_on_a_terminal_of_80_columns(group):
    told = CliRunner().invoke(app, [group, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).output
    assert "..." not in told.partition("Commands:")[2].partition("Examples:")[0]


def test_help_leads_a_newcomer_first():
    """Sections in the order in which one needs them."""
    told = CliRunner().invoke(app, ["--help"]).output
    listed = [line.split()[0] for line in told.partition("Start here:")[2].splitlines() if line.strip()]
    assert listed[:5] == ["doctor", "up", "down", "status", "logs"]
    sections = [line for line in told.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert sections[:4] == ["Options:", "Start here:", "Bring code in, see what became of it:", "Train:"]


def test_the_version_is_that_of_the_project():
    with (PROJECT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    assert CliRunner().invoke(app, ["--version"]).output == f"ratchet {version}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_had_for_every_shell(shell, monkeypatch):
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: shell)
    done = CliRunner().invoke(app, ["--show-completion"], prog_name="ratchet")
    assert "_RATCHET_COMPLETE" in done.output


def test_a_misspelt_command_is_exit_status_2_and_named():
    done = CliRunner().invoke(app, ["statsu"])
    assert done.exit_code == 2
    assert "Did you mean 'stats', 'status'?" in done.output


def test_no_colour_where_it_is_no_terminal(tmp_path):
    done = ratchet("status", RATCHET_HOME=str(tmp_path), FORCE_COLOR="")
    assert "\x1b" not in done.stdout


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
