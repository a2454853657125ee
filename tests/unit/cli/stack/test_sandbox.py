"""Where the trainer of a local stack finds the sandbox."""

import stat
from pathlib import Path

import pytest
from pydantic import SecretStr

from services.cli import environment
from services.cli.stack import sandbox, up
from services.core.target import Target
from services.sandbox import isolation

TARGET = Target(host="127.0.0.1", port=5433, dbname="ratchet", user="ratchet", password=SecretStr("owner's"))
BROKEN = "generated programs cannot be isolated here (bwrap: No permissions): install bubblewrap"


@pytest.fixture
def local(tmp_path):
    """`local(name=value, …)`: the environment of a stack in a short home."""

    def make(**variables):
        return environment.read({"RATCHET_HOME": "/r", **variables}, tmp_path)

    return make


def trainers_socket(given, place):
    return next(
        part for part in up.parts(given, TARGET, place, "token") if part.name == "trainer"
    ).environment.get("SANDBOX_SOCKET")


def test_where_bubblewrap_works_the_stack_has_a_sandbox_and_the_trainer_knows_it(local):
    place = sandbox.decide(local(), None)
    assert [part.name for part in up.parts(local(), TARGET, place, "token")][-1] == sandbox.NAME
    assert trainers_socket(local(), place) == str(place.socket) == "/r/run/sandbox/socket"


def test_where_it_does_not_work_the_stack_starts_without_and_says_what_to_do(local):
    """Nothing of the demonstration runs generated programs."""
    place = sandbox.decide(local(), BROKEN)
    assert sandbox.NAME not in [part.name for part in up.parts(local(), TARGET, place, "token")]
    assert trainers_socket(local(), place) is None
    assert not place.isolated
    assert BROKEN in place.says


def test_without_isolation_only_when_it_was_asked_for(local):
    """And a person is told even so."""
    place = sandbox.decide(local(ALLOW_UNSANDBOXED="true"), BROKEN)
    assert not place.isolated
    assert "no isolation" in place.says
    assert "--allow-unsandboxed" in sandbox.part(local(), place).command


def test_where_it_works_programs_are_isolated_even_if_they_need_not_be(local):
    place = sandbox.decide(local(ALLOW_UNSANDBOXED="true"), None)
    assert place.isolated
    assert "--allow-unsandboxed" not in sandbox.part(local(), place).command


def test_a_sandbox_that_is_named_is_used_and_none_started(local):
    given = local(SANDBOX_SOCKET="/elsewhere/socket")
    place = sandbox.decide(given, BROKEN)
    assert not place.starts
    assert trainers_socket(given, place) == "/elsewhere/socket"


def test_a_home_too_long_for_a_socket_leaves_it_to_who_needs_a_sandbox(local):
    """A client without a socket starts a sandbox of its own, in the system's temporary folder."""
    place = sandbox.decide(local(RATCHET_HOME="/" + "long/" * 25), None)
    assert (place.socket, place.starts, place.isolated) == (None, False, True)


def test_the_sandbox_gets_no_login_and_no_token(local):
    given = local(DATABASE_URL="postgresql://u:hunter2@db/r", HF_TOKEN="hunter2", WANDB_API_KEY="hunter2")
    part = sandbox.part(given, sandbox.decide(given, None))
    assert set(part.environment) <= set(sandbox.KEPT)
    assert "hunter2" not in "".join(part.environment.values())


def test_a_relative_socket_counts_from_where_it_is_named(tmp_path):
    """As directories do."""
    settings = environment.read({"SANDBOX_SOCKET": "s"}, tmp_path, here=Path("/elsewhere")).settings
    assert settings.sandbox_socket == Path("/elsewhere/s")


def test_why_it_does_not_work_comes_with_what_to_do(monkeypatch):
    """Without bubblewrap on the path or among the packages."""
    monkeypatch.setattr(isolation, "_bubblewraps", lambda: iter(()))
    assert "no bubblewrap is installed" in sandbox.complaint()
    assert "apt install bubblewrap" in sandbox.complaint()


def test_only_this_user_may_have_programs_run(local, tmp_path):
    """Whoever enters the socket's folder can connect, and the sandbox may have no isolation."""
    place = sandbox.decide(local(RATCHET_HOME=str(tmp_path / "h"), ALLOW_UNSANDBOXED="true"), BROKEN)
    place.make_folder()
    assert stat.S_IMODE(place.socket.parent.stat().st_mode) == 0o700
