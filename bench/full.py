"""Full ingestion as in production: the processor's own process on an embedded PostgreSQL, its CPU measured.

CPU seconds are those of the processor, of its judge processes and of all processes of the server.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from services.cli.stack.postgres import EmbeddedPostgres
from services.core import db
from services.core.db import Database
from services.core.settings import PROJECT, Settings
from services.core.target import Target
from services.processor.progress import Progress
from services.processor.rules import Rules
from services.processor.scan import SourceScan
from services.processor.sources import source

TEMPLATE = "bench_template"
LOOK_INTERVAL = 0.05  # seconds between two looks whether all is done
STOP_SECONDS = 20.0
COUNT = """
    SELECT (SELECT count(*) FROM files) AS files, (SELECT count(*) FROM contents WHERE live) AS contents
"""
DONE = """
    SELECT count(*) AS seen,
           count(last_scanned_at) FILTER (WHERE %(since)s IS NULL OR last_scanned_at >= %(since)s) AS scanned,
           EXISTS (SELECT FROM claims) AS busy
    FROM sources
    WHERE name = ANY(%(names)s)
"""


class Server:
    """A PostgreSQL of the bench's own, with a fresh migrated database for each run."""

    def __init__(self, home: Path) -> None:
        self._postgres = EmbeddedPostgres(home)
        self._owner = self._postgres.start()
        self._administer(f"DROP DATABASE IF EXISTS {TEMPLATE}", f"CREATE DATABASE {TEMPLATE}")
        db.migrate(self._owner.model_copy(update={"dbname": TEMPLATE}))
        self._count = 0

    def stop(self) -> None:
        self._postgres.stop()

    @contextmanager
    def database(self) -> Iterator[Target]:
        """A database that is gone afterwards."""
        self._count += 1
        name = f"bench_{self._count}"
        self._administer(
            f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}"
        )
        try:
            yield self._owner.model_copy(update={"dbname": name})
        finally:
            self._administer(f"DROP DATABASE {name} WITH (FORCE)")

    def cpu_seconds(self) -> float:
        assert self._postgres.pid is not None
        return family_cpu_seconds(psutil.Process(self._postgres.pid))

    def _administer(self, *statements: str) -> None:
        with closing(db.connect(self._owner)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)


@dataclass(frozen=True)
class Run:
    """One ingestion of a whole folder."""

    files: int
    stored: int
    wall_s: float  # from the first source's row to the end of the last source's scan
    start_s: float  # before that
    processor_cpu_s: float
    judges_cpu_s: float
    server_cpu_s: float
    processor_rss_bytes: int

    @property
    def cpu_s(self) -> float:
        return self.processor_cpu_s + self.judges_cpu_s + self.server_cpu_s

    @property
    def files_per_cpu_s(self) -> float:
        return self.files / self.cpu_s

    def __str__(self) -> str:
        return (
            f"{self.files:,} files ({self.stored:,} contents) in {self.wall_s:.1f} s wall,"
            f" {self.cpu_s:.1f} s CPU (processor {self.processor_cpu_s:.1f}, judges {self.judges_cpu_s:.1f},"
            f" PostgreSQL {self.server_cpu_s:.1f}): {self.files_per_cpu_s:.0f} files/CPU-s"
        )


def ingest(server: Server, target: Target, folder: Path, workers: int) -> Run:
    """Run `python -m services.processor` on the folder until all of it is stored or refused."""
    begun, server_before = time.monotonic(), server.cpu_seconds()
    with processor(target, folder, workers) as process, closing(db.connect(target)) as connection:
        connection.autocommit = True
        appeared = wait_until_done(connection, [process], [found.printable for found in source.find(folder)])
        ended = time.monotonic()
        own, judges = processor_cpu_seconds(process)
        server_s = server.cpu_seconds() - server_before
        rss = process.memory_info().rss
        files, stored = count(connection)
    return Run(files, stored, ended - appeared, appeared - begun, own, judges, server_s, rss)


@contextmanager
def processor(target: Target, folder: Path, workers: int) -> Iterator[psutil.Process]:
    """The processor as the daemon starts it, ended at the end."""
    settings = {
        "POSTGRES_HOST": target.host,
        "POSTGRES_PORT": str(target.port),
        "POSTGRES_DB": target.dbname,
        "POSTGRES_USER": target.user,
        "POSTGRES_PASSWORD": target.password.get_secret_value(),
        "DATABASE_URL": "",
        "INGEST_DIR": str(folder),
        "PROCESSOR_WORKERS": str(workers),
        "RESCAN_INTERVAL": "3600",
        "LOG_LEVEL": "ERROR",
        "RATCHET_PARENT_PID": str(os.getpid()),
    }
    command = [sys.executable, "-m", "services.processor"]
    child = subprocess.Popen(command, cwd=PROJECT, env={**os.environ, **settings})
    try:
        yield psutil.Process(child.pid)
    finally:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def wait_until_done(
    connection: Any,
    processes: list[psutil.Process],
    names: list[str],
    *,
    since: object = None,
    deadline: float = float("inf"),
) -> float:
    """Wait until these sources are walked and no chunk is left; when the first one appeared (monotonic).

    `since` is a time of the database, before which a walk does not count. Raises TimeoutError.
    """
    appeared: float | None = None
    with connection.cursor() as cursor:
        while True:
            cursor.execute(DONE, {"names": names, "since": since})
            seen, scanned, busy = cursor.fetchone()
            if seen and appeared is None:
                appeared = time.monotonic()
            if scanned == len(names) and not busy:
                return appeared or time.monotonic()
            if any(process.status() == psutil.STATUS_ZOMBIE for process in processes):
                raise SystemExit("a processor ended before the files were stored: see its messages above")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(names):,} sources are not stored yet")
            time.sleep(LOOK_INTERVAL)


def count(connection: Any) -> tuple[int, int]:
    """Files that have a row, and contents that are live."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT)
        files, contents = cursor.fetchone()
    return int(files), int(contents)


def rescan(target: Target, folder: Path) -> tuple[int, float, float]:
    """Walk a folder that has not changed; how many files were unchanged, wall and CPU seconds of ours."""
    rules = Rules.of(Settings())
    with closing(Database(target, application="bench", max_conn=2)) as database:
        begun, used, unchanged = time.monotonic(), time.process_time(), 0
        for found in source.find(folder):
            unchanged += SourceScan(database, found, rules, Progress(), work=lambda: False).run().unchanged
    return unchanged, time.monotonic() - begun, time.process_time() - used


def processor_cpu_seconds(process: psutil.Process) -> tuple[float, float]:
    """Of the processor itself; of its judge processes, those that ended included."""
    used = process.cpu_times()
    judges = sum(family_cpu_seconds(child) for child in process.children())
    return used.user + used.system, judges + used.children_user + used.children_system


def family_cpu_seconds(process: psutil.Process) -> float:
    """Of a process, of its children that ended, and of those that live."""
    used = process.cpu_times()
    total = float(used.user + used.system + used.children_user + used.children_system)
    for child in process.children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += float(times.user + times.system + times.children_user + times.children_system)
    return total


def two_process_speedup(rounds: int) -> float:
    """How much more two processes that share nothing do than one, now and here: the most workers can gain."""
    code = "sum(number * number % 7 for number in range(6_000_000))"

    def seconds(count: int) -> float:
        begun = time.monotonic()
        running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
        for process in running:
            process.wait()
        return time.monotonic() - begun

    pairs = [(seconds(1), seconds(2)) for _ in range(rounds)]
    return 2 * min(one for one, _ in pairs) / min(two for _, two in pairs)


def say(line: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {line}", flush=True)
