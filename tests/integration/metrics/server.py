"""`python -m services.metrics` as a real process on a real socket."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from services.core.settings import PROJECT
from services.core.target import Target


@dataclass(frozen=True)
class Running:
    process: subprocess.Popen[bytes]
    url: str

    def get(self, path: str) -> tuple[int, Any]:
        """Status and parsed JSON; 0 while nothing listens."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        except OSError:
            return 0, None


@contextmanager
def running(target: Target, module: str = "services.metrics", **settings: str) -> Iterator[Running]:
    """The server, alive, with further settings; killed at the end if it did not stop by itself.

    `module`: another one that serves /health/live on METRICS_PORT.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environ = {
        "PATH": os.environ["PATH"],
        "POSTGRES_HOST": target.host,
        "POSTGRES_PORT": str(target.port),
        "POSTGRES_DB": target.dbname,
        "POSTGRES_USER": target.user,
        "POSTGRES_PASSWORD": target.password.get_secret_value(),
        "METRICS_PORT": str(port),
        **settings,
    }
    command = [sys.executable, "-m", module]
    process = subprocess.Popen(command, cwd=PROJECT, env=environ, stderr=subprocess.PIPE)
    server = Running(process, f"http://127.0.0.1:{port}")
    try:
        wait_until(lambda: server.get("/health/live")[0] == 200)
        yield server
    finally:
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Until the condition holds; fails when it does not come to that."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
