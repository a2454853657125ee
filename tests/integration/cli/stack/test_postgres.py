"""The server of our own: it starts, answers nobody else, survives crashes, and never outlives us."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from pydantic import SecretStr

from services.cli.stack import cluster
from services.cli.stack.postgres import EmbeddedPostgres
from services.core import db
from services.core.errors import DatabaseUnavailableError, StackError
from services.core.settings import PROJECT
from services.core.target import Target

OWNER_PROCESS = """
import sys, time
from pathlib import Path
from services.cli.stack.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for all tests of this module: each leaves its server stopped."""
    return tmp_path_factory.mktemp("home") / "below" / "a dir"


@pytest.fixture
def server(home: Path) -> Iterator[EmbeddedPostgres]:
    embedded = EmbeddedPostgres(home)
    yield embedded
    embedded.stop()


@pytest.fixture
def owner_process(home: Path) -> Iterator[tuple[subprocess.Popen[str], psutil.Process]]:
    """Another process that has started the home's server, and that server."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER_PROCESS, str(home)], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    yield owner, psutil.Process(int(owner.stdout.readline()))
    owner.kill()
    owner.wait()


def ask(target: Target, question: str) -> object:
    with closing(db.connect(target)) as connection, connection.cursor() as cursor:
        cursor.execute(question)
        return cursor.fetchone()[0]


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "condition not met in time"
        time.sleep(0.02)


def is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("server_encoding", "UTF8"),
        ("data_checksums", "on"),
        ("fsync", "on"),
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("password_encryption", "scram-sha-256"),
    ],
)
def test_is_set_up_safely(server: EmbeddedPostgres, setting: str, value: str) -> None:
    """Checksums, durability, one local address, no socket file, SCRAM."""
    assert ask(server.start(), f"SHOW {setting}") == value


def test_database_belongs_to_the_role_that_logs_in(server: EmbeddedPostgres) -> None:
    """The database ratchet is owned by the role ratchet."""
    owner = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'ratchet'"
    assert ask(server.start(), owner) == "ratchet"


def test_refuses_a_wrong_password(server: EmbeddedPostgres) -> None:
    """No login without the owner's password, not even from this machine."""
    wrong = server.start().model_copy(update={"password": SecretStr("wrong")})
    with pytest.raises(DatabaseUnavailableError, match="POSTGRES_PASSWORD"):
        db.connect(wrong)


def test_password_is_private(server: EmbeddedPostgres, home: Path) -> None:
    """Only the owner can read the password's file."""
    server.start()
    assert (home / "secrets" / "owner").stat().st_mode & 0o077 == 0


def test_keeps_data_password_and_port(server: EmbeddedPostgres) -> None:
    """A second start finds what the first one left, at the same address."""
    before = server.start()
    with closing(db.connect(before)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    server.stop()
    after = server.start()
    assert (after, ask(after, "SELECT answer FROM kept")) == (before, 42)


def test_takes_another_port_when_its_own_is_taken(server: EmbeddedPostgres) -> None:
    """A stranger on our port is left alone."""
    first = server.start()
    server.stop()
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", first.port))
        stranger.listen()
        second = server.start()
    assert second.port != first.port


def test_a_second_starter_is_refused(server: EmbeddedPostgres, home: Path) -> None:
    """Two supervisors never share a home: the second learns that it runs already."""
    server.start()
    with pytest.raises(StackError, match="make down"):
        EmbeddedPostgres(home).start()
    assert server.pid is not None


def test_dies_with_its_parent(owner_process: tuple[subprocess.Popen[str], psutil.Process]) -> None:
    """kill -9 of the process that started it stops the server."""
    owner, server_process = owner_process
    owner.kill()
    wait_until(lambda: is_gone(server_process))


def test_starts_after_everything_was_killed(
    owner_process: tuple[subprocess.Popen[str], psutil.Process], server: EmbeddedPostgres, home: Path
) -> None:
    """kill -9 of server and parent leaves a stale postmaster.pid; the next start recovers."""
    owner, server_process = owner_process
    server_process.kill()
    owner.kill()
    assert (home / "postgres" / "data" / "postmaster.pid").exists()
    assert ask(server.start(), "SELECT 1") == 1


def test_starts_again_after_the_server_alone_was_killed(server: EmbeddedPostgres) -> None:
    """A supervisor whose server died calls start again and has the same database back."""
    target = server.start()
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: server.pid is None)
    assert server.start() == target


def test_a_pid_reused_by_another_program_stops_no_start(server: EmbeddedPostgres, home: Path) -> None:
    """A postmaster.pid that names a stranger's process is stale; the stranger lives on."""
    server.start()
    server.stop()
    data = home / "postgres" / "data"
    (data / "postmaster.pid").write_text(f"{os.getppid()}\n{data}\n")
    assert ask(server.start(), "SELECT 1") == 1


def test_stops_a_server_left_behind(server: EmbeddedPostgres, home: Path) -> None:
    """A server of this home that outlived its parent is recognised, stopped and replaced."""
    orphan = EmbeddedPostgres(home)
    orphan.start()
    left_behind = orphan.pid
    assert orphan._lock_fd is not None
    os.close(orphan._lock_fd)  # what the parent's death does
    orphan._lock_fd = None
    assert ask(server.start(), "SELECT 1") == 1
    assert server.pid != left_behind
    assert orphan.pid is None


def test_a_half_made_cluster_is_made_again(server: EmbeddedPostgres, tmp_path: Path) -> None:
    """initdb killed half way leaves nothing that a later start would take for a database."""
    unfinished = tmp_path / "postgres" / "data.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    fresh = EmbeddedPostgres(tmp_path)
    try:
        assert ask(fresh.start(), "SELECT 1") == 1
    finally:
        fresh.stop()
    del server


def test_a_server_that_cannot_start_says_why(server: EmbeddedPostgres, home: Path) -> None:
    """The error holds the server's own last words."""
    server.start()
    server.stop()
    broken = EmbeddedPostgres(home, {"shared_buffers": "much"})
    with pytest.raises(StackError, match="shared_buffers"):
        broken.start()
    assert broken.pid is None


def test_a_home_that_cannot_be_is_named(tmp_path: Path) -> None:
    """RATCHET_HOME below a file is a StackError naming it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StackError, match=str(tmp_path / "file")):
        EmbeddedPostgres(tmp_path / "file").start()


def test_a_lost_password_is_explained(server: EmbeddedPostgres, home: Path) -> None:
    """Data without its password: what is missing and what to do."""
    server.start()
    server.stop()
    secret = home / "secrets" / "owner"
    secret.rename(secret.with_suffix(".away"))
    try:
        with pytest.raises(StackError, match="put it back"):
            server.start()
    finally:
        secret.with_suffix(".away").rename(secret)


def test_missing_binaries_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wheel: install it, or name a server that runs."""
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(StackError, match="make setup"):
        cluster.find_binaries()


def test_stop_is_safe_to_repeat(server: EmbeddedPostgres) -> None:
    """Stopping a stopped server does nothing."""
    server.start()
    server.stop()
    server.stop()
    assert server.pid is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts the server as another user")
def test_root_without_setpriv_is_told_what_to_do(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No setpriv: three ways out are named."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StackError, match=r"util-linux.*ordinary user.*DATABASE_URL"):
        server.start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory that others cannot enter")
def test_runs_below_a_directory_only_root_may_enter(tmp_path: Path) -> None:
    """Nothing is opened up for the server: the directory above keeps its mode and owner."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    embedded = EmbeddedPostgres(closed / "home")
    try:
        assert ask(embedded.start(), "SELECT 1") == 1
        assert embedded.pid is not None
        assert psutil.Process(embedded.pid).uids().effective != 0
    finally:
        embedded.stop()
    assert (closed.stat().st_mode & 0o777, closed.stat().st_uid) == (0o700, 0)


def test_survives_sigint_to_its_parents_group(server: EmbeddedPostgres) -> None:
    """Ctrl-C in the terminal reaches us, not the server: we stop it last."""
    server.start()
    assert server.pid is not None
    assert os.getpgid(server.pid) != os.getpgid(0)
