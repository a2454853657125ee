"""The trainer's poll and selection over many contents. Ends with one line of JSON.

    .venv/bin/python bench/poll.py --quick        # a million contents; without it, ten million

Fills a database of its own with short generated texts, a file each; lets one track take them over, runs
two rounds of 1 % each, one promoted and one refused; then times, with the trainer's own queries and from
the client's side:

- 2,000 polls, as the daemon polls;
- 500 selections of 1,000 contents, each followed by a promotion of what it returned, so that none
  returns what another did and dead rows gather as they do in life. Rounds follow one another far too
  fast here for autovacuum, so the bench vacuums when autovacuum would.

Wall times suffer from whatever else the machine does; CPU times of the client and of the server
stand beside them. Ten million contents need 12 GB of disk in the temporary directory.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import quantiles
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from services.cli.stack.postgres import EmbeddedPostgres  # noqa: E402
from services.core import db, sql  # noqa: E402
from services.core.models import RoundState  # noqa: E402
from services.core.target import Target  # noqa: E402
from services.trainer.ledger import Lease, Ledger  # noqa: E402
from services.trainer.recipes.recipe import Recipe  # noqa: E402

ROWS, QUICK_ROWS = 10_000_000, 1_000_000
CHUNK = 500_000  # contents a statement
POLLS, SELECTIONS, SELECTED = 2_000, 500, 1_000
MOST_COUNTED = 2_000  # as services/trainer/daemon/backlog.py counts: twice MIN_NEW_FILES
THRESHOLD = 70
VACUUM_AFTER = 20_000  # dead rows: sql/migrations/0004_backlog.sql
DEAD_ROWS = 2  # a content leaves when a round takes it and when the champion has learned from it
LINE = 150  # characters of a plan's line that are shown
# A crash loses the bench anyway. All else is as the product starts its server.
OPTIONS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "4GB"}

FILL_CONTENTS = """
    INSERT INTO contents (sha256, cluster_id, language, text, bytes, characters, lines, score,
                          score_reasons, scorer_version, live)
    SELECT sha256(text::bytea), number, (ARRAY['python', 'rust', 'go', 'java', 'cpp'])[1 + number %% 5], text,
           64, 64, 1, 50 + abs(hashint4(number) %% 51), '{}', 1, true
    FROM (SELECT number, rpad('def function_' || number || '(): return ', 64, 'x') AS text
          FROM generate_series(%(first)s, %(last)s) AS number) AS texts
"""
FILL_FILES = """
    INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id)
    SELECT %(source)s, 'module_' || id %% 1000 || '/file_' || id || '.py', 64, 0, id
    FROM contents WHERE id BETWEEN %(first)s AND %(last)s
"""
OPEN_ROUND = """
    INSERT INTO rounds (track, number, recipe, snapshot_hash)
    SELECT %(track)s, 1 + max(number), '{}', '' FROM rounds WHERE track = %(track)s RETURNING id
"""
LEARN = """
    INSERT INTO trained (track, content_id, round_id)
    SELECT %(track)s, content_id, round_id FROM round_contents WHERE round_id = %(round_id)s
"""
SIZES = """
    SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relname ~ '^backlog' AND relkind IN ('r', 'i')
"""
Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, help=f"contents (default {ROWS:,}; {QUICK_ROWS:,} with --quick)")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    rows = arguments.rows or (QUICK_ROWS if arguments.quick else ROWS)
    with tempfile.TemporaryDirectory(prefix="ratchet-poll-") as home:
        postgres = EmbeddedPostgres(Path(home), OPTIONS)
        try:
            target = postgres.start()
            db.migrate(target)
            with closing(db.Database(target, application="bench", max_conn=1)) as database:
                figures = measure(target, database, rows)
        finally:
            postgres.stop()
    print(json.dumps(figures))


def measure(target: Target, database: db.Database, rows: int) -> Figures:
    recipe = Recipe(name="bench", base_model="./model")
    ledger = Ledger(database, recipe.name)
    figures: Figures = {"rows": rows}
    figures["fill_s"], _ = seconds(lambda: fill(target, rows))
    figures["new_track_s"], lease = seconds(lambda: ledger.take(recipe, "bench"))
    for state in (RoundState.PROMOTED, RoundState.REFUSED):
        figures |= run_round(ledger, lease, recipe, rows // 100, state)
    first_poll, _ = seconds(lambda: ledger.count_new(THRESHOLD, MOST_COUNTED))
    second_poll, _ = seconds(lambda: ledger.count_new(THRESHOLD, MOST_COUNTED))
    figures |= {"first_poll_after_rounds_ms": 1000 * first_poll, "second_poll_ms": 1000 * second_poll}
    figures["vacuum_s"], _ = seconds(lambda: administer(target, "VACUUM ANALYZE"))
    with database.transaction() as tx:
        figures |= {f"{name}_mb": size / 1e6 for name, size in run(tx, SIZES)}
        show_plans(tx, recipe.name)
    figures |= poll(database, ledger)
    figures |= select(target, database, recipe.name, rows)
    return {name: round(figure, 3) for name, figure in figures.items()}


def fill(target: Target, rows: int) -> None:
    """Contents and a file each. No track is there yet, so the triggers would have nothing to do."""
    administer(target, "ALTER TABLE contents DISABLE TRIGGER USER")
    with closing(db.connect(target)) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO sources (name) VALUES ('generated') RETURNING id")
        source = cursor.fetchone()[0]
        for first in range(1, rows + 1, CHUNK):
            chunk = {"source": source, "first": first, "last": min(rows, first + CHUNK - 1)}
            cursor.execute(FILL_CONTENTS, chunk)
            cursor.execute(FILL_FILES, chunk)
            connection.commit()
            print(f"{chunk['last']:>14,} contents", file=sys.stderr)
    administer(target, "ALTER TABLE contents ENABLE TRIGGER USER", "VACUUM ANALYZE")


def run_round(ledger: Ledger, lease: Lease, recipe: Recipe, size: int, state: RoundState) -> Figures:
    """A round of so many contents, from opening to its end."""
    opening, opened = seconds(lambda: ledger.open_or_resume(lease, recipe, THRESHOLD, size))
    closing_, _ = seconds(
        lambda: ledger.close(
            lease,
            opened,
            state=state,
            training={},
            verdict={"reason": "as the bench wants"},
            losses={},
            manifest={} if state is RoundState.PROMOTED else None,
        )
    )
    return {f"open_{state}_s": opening, f"close_{state}_s": closing_}


def poll(database: db.Database, ledger: Ledger) -> Figures:
    """As the daemon does: a transaction a poll."""
    clock = Clock(database)
    for _ in range(POLLS):
        with clock:
            ledger.count_new(THRESHOLD, MOST_COUNTED)
    return clock.percentiles("poll")


def select(target: Target, database: db.Database, track: str, rows: int) -> Figures:
    """The candidates, then the roles of their clusters, as a new round asks for them."""
    of_candidates, of_roles = Clock(database), Clock(database)
    vacuum_every = VACUUM_AFTER // (DEAD_ROWS * SELECTED)
    for number in range(SELECTIONS):
        with database.transaction() as tx:
            with of_candidates:
                candidates = tx.all("candidates", track=track, threshold=THRESHOLD, most=SELECTED)
            if len(candidates) < SELECTED:
                raise SystemExit(f"{rows:,} rows are too few for {SELECTIONS} selections")
            clusters = [row.cluster_id for row in candidates]
            with of_roles:
                tx.all("cluster_roles", track=track, clusters=clusters)
            learn(tx, track, [row.content_id for row in candidates])
        if (number + 1) % vacuum_every == 0:
            administer(target, "VACUUM backlog")
    return of_candidates.percentiles("select_1000") | of_roles.percentiles("cluster_roles_1000")


def learn(tx: db.Transaction, track: str, content_ids: Sequence[int]) -> None:
    """A round had these and was promoted."""
    round_id = run(tx, OPEN_ROUND, track=track)[0][0]
    rows = [(round_id, content_id, "train", position) for position, content_id in enumerate(content_ids)]
    tx.copy("round_contents", ("round_id", "content_id", "role", "position"), rows)
    tx.execute("close_round", round_id=round_id, state=RoundState.PROMOTED, training=None, verdict=None)
    tx._cursor.execute(LEARN, {"track": track, "round_id": round_id})  # noqa: SLF001


def show_plans(tx: db.Transaction, track: str) -> None:
    asked = {"track": track, "threshold": THRESHOLD, "most": SELECTED}
    clusters = [row.cluster_id for row in tx.all("candidates", **asked)]
    for query in ("count_new_contents", "candidates", "cluster_roles"):
        print(f"\n{query}")
        explain = "EXPLAIN (ANALYZE, BUFFERS) " + sql.queries()[query].text
        for (line,) in run(tx, explain, **asked, clusters=clusters):
            print("  " + (line if len(line) < LINE else line[:LINE] + " …"))
    print()


def run(tx: db.Transaction, statement: str, **parameters: Any) -> list[Any]:
    tx._cursor.execute(statement, parameters)  # noqa: SLF001  no query of the product's
    return list(tx._cursor.fetchall())  # noqa: SLF001


def administer(target: Target, *statements: str) -> None:
    """Outside any transaction, however long it takes."""
    with closing(db.connect(target)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        for statement in ("SET statement_timeout = 0", *statements):
            cursor.execute(statement)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """How long the work took, and what it returned."""
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


class Clock:
    """Of each block under it: seconds on the wall, of CPU here and of CPU in the server's process for us."""

    def __init__(self, database: db.Database) -> None:
        with database.transaction() as tx:
            self._schedule = Path(f"/proc/{run(tx, 'SELECT pg_backend_pid()')[0][0]}/schedstat")
        self._spans: list[list[float]] = []

    def __enter__(self) -> None:
        self._begun = self._now()

    def __exit__(self, *_: object) -> None:
        self._spans.append([now - then for now, then in zip(self._now(), self._begun, strict=True)])

    def _now(self) -> tuple[float, float, float]:
        server = int(self._schedule.read_text().split()[0]) / 1e9  # kernel: nanoseconds on a CPU come first
        return time.perf_counter(), time.process_time(), server

    def percentiles(self, name: str) -> Figures:
        figures: Figures = {}
        kinds = ("", "_client_cpu", "_server_cpu")
        for kind, spans in zip(kinds, zip(*self._spans, strict=True), strict=True):
            cuts = quantiles(spans, n=100)
            figures |= {f"{name}{kind}_p50_ms": 1000 * cuts[49], f"{name}{kind}_p99_ms": 1000 * cuts[98]}
        return figures


if __name__ == "__main__":
    main()
