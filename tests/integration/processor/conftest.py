"""A processor to run: as calls in this process, or as the real process."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from psycopg2 import extensions

from services.core import db
from services.core.settings import PROJECT, Target
from services.processor.heartbeat import Progress
from services.processor.pipeline import SourceScan, Tally

FUNCTION = '''"""What there is to know of {noun}."""


def count_{noun}(shelf, limit):
    """How many {noun} lie on the shelf, at most the limit."""
    if limit < 0:
        raise ValueError("limit of {noun} must not be negative")
    return min(len(shelf), limit)
'''


def code(noun: str) -> str:
    """A small file worth keeping, different for every noun."""
    return FUNCTION.format(noun=noun)


@pytest.fixture
def ingest(tmp_path: Path) -> Path:
    folder = tmp_path / "ingest"
    folder.mkdir()
    return folder


@pytest.fixture
def repo(ingest: Path) -> Path:
    """A source called `repo` with two files worth keeping and one that is not."""
    repo = ingest / "repo"
    (repo / "src").mkdir(parents=True)
    (repo / "src" / "apples.py").write_text(code("apples"))
    (repo / "src" / "pears.py").write_text(code("pears"))
    (repo / "short.py").write_text("x = 1\n")
    return repo


@pytest.fixture
def scan(database: db.Database, ingest: Path) -> Callable[..., Tally]:
    """`scan("repo")`: one pass over a source, in this process."""

    def run(source: str = "repo", stop: Callable[[], object] = lambda: False) -> Tally:
        return SourceScan(database, ingest, source, Progress(), stop).run()

    return run


@pytest.fixture
def rows(target: Target) -> Callable[..., list[tuple]]:
    """`rows("SELECT …")`: what the database holds now."""

    def select(query: str, *parameters: object) -> list[tuple]:
        with (
            closing(db.connect(target)) as connection,
            connection.cursor(cursor_factory=extensions.cursor) as cursor,
        ):
            cursor.execute(query, parameters)
            return cursor.fetchall()

    return select


@pytest.fixture
def files(rows) -> Callable[[], dict[str, str | None]]:
    """Path → reason (None: it holds a content) of every file that is not retired."""
    query = "SELECT s.name || '/' || f.path, f.reason FROM files f JOIN sources s ON s.id = f.source_id"
    return lambda: dict(rows(f"{query} WHERE f.retired_at IS NULL"))


@pytest.fixture
def processor(role_target, ingest: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """`processor(RATCHET_FAILPOINT=…)`: the real process, with the rights of its role."""
    login: Target = role_target("ratchet_processor")
    started: list[subprocess.Popen] = []

    def start(**environment: str) -> subprocess.Popen:
        variables = {
            "PATH": os.environ["PATH"],
            "DATABASE_URL": f"postgresql://{login.user}:{login.password.get_secret_value()}"
            f"@{login.host}:{login.port}/{login.dbname}",
            "INGEST_DIR": str(ingest),
            "RESCAN_INTERVAL": "300",
            **environment,
        }
        with (tmp_path / f"processor-{len(started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "services.processor"], env=variables, cwd=PROJECT, stderr=log
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def log(tmp_path: Path) -> Callable[[int], str]:
    """`log(0)`: what the first processor has said so far."""
    return lambda number: (tmp_path / f"processor-{number}.log").read_text()


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for a condition; fails when it does not come true in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not so within {seconds} s"
        time.sleep(0.05)


def instance(process: subprocess.Popen) -> str:
    return f"{socket.gethostname()}:{process.pid}"
