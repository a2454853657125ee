"""A processor to run: as calls in this process, or as the real process."""

import hashlib
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
from services.core.settings import PROJECT
from services.core.target import Target
from services.processor.judging import Judge
from services.processor.pipeline import Pipeline
from services.processor.progress import Progress
from services.processor.rules import Rules
from services.processor.scan import SourceScan
from services.processor.sources import source
from services.processor.tally import Tally

FUNCTION = '''"""What there is to know of {noun}."""


def count_{noun}(shelf, limit):
    """How many {noun} lie on the shelf, at most the limit."""
    if limit < 0:
        raise ValueError("limit of {noun} must not be negative")
    {body}
    return min(len(shelf), limit)
'''


def code(noun: str) -> str:
    """A small file worth keeping, of other words for every noun: no two are near duplicates."""
    digest = hashlib.sha512(noun.encode()).hexdigest().translate(LETTERS)
    words = [digest[start : start + 4] for start in range(0, 128, 4)]
    body = "\n    ".join(f"shelf.{one}({two}, {three})" for one, two, three in batched(words, 3))
    return FUNCTION.format(noun=noun, body=body)


def batched(words: list[str], size: int) -> Iterator[list[str]]:
    """As itertools has it from 3.12 on, without a shorter rest."""
    return (words[start : start + size] for start in range(0, len(words) - size + 1, size))


LETTERS = str.maketrans("0123456789", "ghijklmnop")  # digits look alike to the near-duplicate search


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
def rules() -> Rules:
    """What the scans of a test judge by: no benchmarks of one's own, any licence."""
    return Rules(None)


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """One judge process for all tests: it remembers nothing, and starting one takes half a second."""
    shared = Judge(None)
    yield shared
    shared.close()


@pytest.fixture
def scan(database: db.Database, ingest: Path, rules: Rules, judge: Judge) -> Callable[..., Tally]:
    """`scan("repo")`: one pass over a source, walked and worked off in this thread."""

    def run(name: str = "repo", stop: Callable[[], object] = lambda: False, rules: Rules = rules) -> Tally:
        pipeline = Pipeline(database, ingest, rules, judge)
        progress = Progress()

        def work() -> bool:
            outcome = pipeline.take_one()
            if outcome is not None:
                progress.note(outcome)
            return outcome is not None

        (found,) = [found for found in source.find(ingest) if found.printable == name]
        return SourceScan(database, found, rules, progress, work=work, stop=stop).run()

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


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for a condition; fails when it does not come true in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not so within {seconds} s"
        time.sleep(0.05)


def instance(process: subprocess.Popen) -> str:
    return f"{socket.gethostname()}:{process.pid}"
