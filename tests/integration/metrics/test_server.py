"""The service as it runs: gunicorn, a socket, and a database that goes away."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from services.cli.stack.postgres import EmbeddedPostgres
from services.core import db
from services.core.settings import PROJECT
from services.core.target import Target
from tests.integration.metrics.server import running, wait_until

NO_DURABILITY = {"fsync": "off"}


def test_it_follows_the_database_down_and_up(tmp_path: Path) -> None:
    """Stopped: ready is 503 while live stays 200; back: ready again by itself."""
    postgres = EmbeddedPostgres(tmp_path, NO_DURABILITY)
    target = postgres.start()
    try:
        db.migrate(target)
        with running(target) as server:
            wait_until(lambda: server.get("/health/ready")[0] == 200)
            assert server.get("/metrics")[1]["stale"] is False
            postgres.stop()
            wait_until(lambda: server.get("/health/ready")[0] == 503)
            assert server.get("/health/live")[0] == 200
            status, health = server.get("/health")
            assert (status, health["parts"]["database"]["status"]) == (503, "ill")
            wait_until(lambda: server.get("/metrics")[1]["stale"])
            postgres.start()
            wait_until(lambda: server.get("/health/ready")[0] == 200)
    finally:
        postgres.stop()


def test_a_database_that_never_answers_holds_no_request(target: Target) -> None:
    """A socket that accepts and says nothing: every request is answered, and live beside them."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mute = target.model_copy(update={"port": silent.getsockname()[1]})
        with running(mute) as server, ThreadPoolExecutor(12) as pool:
            busy = [pool.submit(server.get, "/health/ready") for _ in range(12)]
            assert server.get("/health/live")[0] == 200
            assert {request.result()[0] for request in busy} == {503}


def test_sigterm_ends_it_in_good_order(role_target: Callable[[str], Target]) -> None:
    """Exit status 0, nothing left running, a line in the log, no password in it."""
    target = role_target("ratchet_metrics")
    with running(target) as server:
        workers = psutil.Process(server.process.pid).children(recursive=True)
        server.get("/metrics")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        log = server.process.communicate()[1].decode()
        assert not psutil.wait_procs(workers, timeout=60)[1]
    assert "Shutting down" in log
    assert target.password.get_secret_value() not in log


def test_a_killed_master_leaves_no_worker(target: Target) -> None:
    """After kill -9 of the server its worker ends by itself."""
    with running(target) as server:
        workers = psutil.Process(server.process.pid).children(recursive=True)
        server.process.kill()
        assert workers
        assert not psutil.wait_procs(workers, timeout=60)[1]


def test_it_refuses_to_start_without_a_password() -> None:
    """The message names the settings; the status is not 0."""
    command = [sys.executable, "-m", "services.metrics"]
    ended = subprocess.run(command, cwd=PROJECT, env={}, capture_output=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert b"POSTGRES_PASSWORD" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_torch_is_never_imported() -> None:
    """The service starts fast because the application needs no heavy library."""
    check = "import services.metrics.app, services.metrics.exposition, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], cwd=PROJECT, check=True, timeout=60)
