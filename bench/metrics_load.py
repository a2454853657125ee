"""What bench/metrics.py measures with: many rows, a round that runs, requests over a socket, open streams."""

import http.client
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

import psutil

from services.core.db import Database, as_json
from tests.integration.metrics.server import Running
from tests.metrics_history import beat

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
BEAT = 0.5  # seconds between two words of the round that runs
CONTENTS = """
    INSERT INTO contents (sha256, cluster_id, language, text, bytes, characters, lines, score, score_reasons,
                          scorer_version, live)
    SELECT sha256(('bench ' || number)::bytea), 1000000 + number,
           (ARRAY['python', 'rust', 'go', 'typescript', 'java'])[1 + number %% 5],
           repeat('x = ' || number || E'\\n', 60), 600, 600, 60, 20 + (number * 7919) %% 81, '{}', 1, true
    FROM generate_series(1, %(rows)s) AS number
"""
FILES = """
    WITH source AS (INSERT INTO sources (name, kind) VALUES ('many', 'directory') RETURNING id),
         kept AS (
        INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id, language)
        SELECT source.id, 'src/' || c.id || '.py', 600, 1, c.id, c.language
        FROM source, contents c WHERE c.cluster_id > 1000000)
    INSERT INTO files (source_id, path, size_bytes, mtime_ns, reason, language)
    SELECT source.id, 'no/' || number, 600, 1,
           (ARRAY['generated', 'too_short', 'too_long_line', 'near_duplicate'])[1 + number %% 4], 'python'
    FROM source, generate_series(1, %(rows)s / 4) AS number
"""
ROUNDS = """
    WITH round AS (
        INSERT INTO rounds (track, number, state, recipe, snapshot_hash, attempts, opened_at, closed_at,
                            verdict, training)
        SELECT t.name, 1000 + number, 'refused', t.recipe, 'hash', 1, now() - interval '1 day',
               now() - interval '23 hours', '{"promoted": false, "reason": "no better"}', '{}'
        FROM tracks t, generate_series(1, 10) AS number RETURNING id)
    INSERT INTO round_contents (round_id, content_id, role, position)
    SELECT round.id, c.id, 'train', row_number() OVER (PARTITION BY round.id ORDER BY c.id)
    FROM round, (SELECT id FROM contents WHERE cluster_id > 1000000 ORDER BY id LIMIT %(rows)s / 5) AS c
"""


def add_rows(database: Database, rows: int) -> None:
    """So many contents, a quarter as many refusals, ten rounds that had a fifth of them each."""
    with database.transaction() as tx:
        tx.execute("without_hurry")
        for statement in (CONTENTS, FILES, ROUNDS):
            tx._cursor.execute(statement, {"rows": rows})  # noqa: SLF001
    with database.transaction() as tx:
        tx._cursor.execute("ANALYZE")  # noqa: SLF001


@contextmanager
def round_runs(database: Database) -> Iterator[None]:
    """A trainer that says twice a second how far it is, and logs its loss."""
    over = threading.Event()

    def run() -> None:
        step = 100_000
        while not over.wait(BEAT):
            step += 1
            beat(database, datetime.now(UTC))
            with database.transaction() as tx:
                round_ = tx._cursor  # noqa: SLF001
                round_.execute("SELECT id FROM rounds WHERE state = 'open' LIMIT 1")
                (number,) = round_.fetchone()
                metrics = as_json({"loss": 1.2, "learning_rate": 1e-4})
                tx.execute("record_progress", round_id=number, kind="train", step=step, metrics=metrics)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True)
class Latencies:
    """Of requests, in milliseconds."""

    values: tuple[float, ...]
    processor: float = 0.0  # milliseconds of the process that answered, all requests together

    def __add__(self, other: "Latencies") -> "Latencies":
        return Latencies(self.values + other.values, self.processor + other.processor)

    def quantile(self, share: float) -> float:
        ordered = sorted(self.values)
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    @property
    def p50(self) -> float:
        return round(statistics.median(self.values), 3)

    @property
    def cpu(self) -> float:
        """Processor time of a request, with its share of what goes on in the background."""
        return round(self.processor / len(self.values), 3)


def latencies(
    server: Running, path: str, seconds: float, accept: str = "text/html", rate: float = 100.0
) -> Latencies:
    """Of whole answers over one kept connection, `rate` of them a second at most."""
    place = urlsplit(server.url)
    (worker,) = psutil.Process(server.process.pid).children()
    before = worker.cpu_times()
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=20)
    values = []
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        begun = time.perf_counter()
        connection.request("GET", path, headers={"Accept": accept})
        answer = connection.getresponse()
        answer.read()
        values.append(1000 * (time.perf_counter() - begun))
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}")
        time.sleep(max(0.0, now + 1 / rate - time.monotonic()))
    connection.close()
    after = worker.cpu_times()
    return Latencies(tuple(values), 1000 * (after.user - before.user + after.system - before.system))


@contextmanager
def streams(address: str, count: int) -> Iterator[list[http.client.HTTPResponse]]:
    """So many open event streams, each read by a thread."""
    place = urlsplit(address)
    connections, answers = [], []
    for _ in range(count):
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)
        connection.request("GET", "/api/v1/stream")
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"a stream answered {answer.status}")
        connections.append(connection)
        answers.append(answer)
    try:
        yield answers
    finally:
        for answer, connection in zip(answers, connections, strict=True):
            answer.close()
            connection.close()
