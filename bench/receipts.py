"""A receipt for 100,000 contents: its size, the time to write and to verify it. Ends with one line of JSON.

    .venv/bin/python bench/receipts.py --quick        # ten thousand contents

Fills a database of its own with that many files in a hundred repositories and opens a round that trains on
them, with the trainer's own code; writes the round's receipt as publishing does, reads it as `ratchet
receipt` does, and asks which adapters were trained on one file. Samples are made up, three to a content,
seen three times each. Beside wall times stand the CPU times of this process, since a busy machine stretches
the former; memory is what Python allocated at most, measured in a pass of its own.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from backports import zstd

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from services.cli.learned.which_adapters import answered, contents_of  # noqa: E402
from services.cli.stack.postgres import EmbeddedPostgres  # noqa: E402
from services.core import db  # noqa: E402
from services.core.models import ContentRole, RoundState  # noqa: E402
from services.trainer import publish  # noqa: E402
from services.trainer.ledger import Ledger, Round  # noqa: E402
from services.trainer.receipts import verifying, writing  # noqa: E402
from services.trainer.receipts.exposure import Exposure  # noqa: E402
from services.trainer.receipts.lines import LEARNED, NAME  # noqa: E402
from services.trainer.recipes.recipe import Recipe  # noqa: E402

CONTENTS, QUICK_CONTENTS = 100_000, 10_000
RECIPE = Recipe(name="bench", base_model="./model", held_out_min=16, validation_min=16, source_share=None)
OPTIONS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "4GB"}
FILL = """
    INSERT INTO sources (name, kind, commit_id, licence)
    SELECT 'repository-' || n, 'git', left(encode(sha256(n::text::bytea), 'hex'), 40),
           (ARRAY['MIT', 'Apache-2.0', 'BSD-3-Clause', NULL])[1 + n %% 4]
    FROM generate_series(1, 100) n;
    INSERT INTO contents (sha256, cluster_id, language, text, bytes, characters, lines, score, score_reasons,
                          scorer_version, live)
    SELECT sha256(text::bytea), n, (ARRAY['python', 'rust', 'go'])[1 + n %% 3], text, length(text),
           length(text), 40 + n %% 200, 71 + n %% 30, '{}', 1, true
    FROM (SELECT n, rpad('def function_' || n || '(): return ', 700 + n %% 900, 'x') AS text
          FROM generate_series(1, %(contents)s) n) t;
    INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id, commit_id)
    SELECT 1 + id %% 100, format('src/package_%%s/module_%%s/file_%%s.py', id %% 97, id %% 89, id), bytes, 1,
           id, left(encode(sha256((id %% 5000)::text::bytea), 'hex'), 40)
    FROM contents;
    ANALYZE;
"""


class Timed:
    """Wall and CPU seconds of each step."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}

    def __call__(self, name: str, work: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        answer = work()
        self.figures[f"{name}_s"] = round(time.perf_counter() - wall, 2)
        self.figures[f"{name}_cpu_s"] = round(time.process_time() - cpu, 2)
        print(
            f"{name}: {self.figures[f'{name}_s']} s, {self.figures[f'{name}_cpu_s']} s of CPU",
            file=sys.stderr,
        )
        return answer


def run(contents: int, home: Path) -> dict[str, Any]:
    postgres = EmbeddedPostgres(home / "postgres", OPTIONS)
    target = postgres.start()
    timed = Timed()
    try:
        db.migrate(target)
        with closing(db.connect(target)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(FILL, {"contents": contents})
        database = db.Database(target, application="bench")
        ledger = Ledger(database, RECIPE.name)
        lease = ledger.take(RECIPE, "bench")
        assert lease is not None
        opened = timed("open_round", lambda: ledger.open_or_resume(lease, RECIPE, 70, contents))
        assert opened is not None
        counted: list[tuple[int, int, int]] = []
        manifest, training = _manifest(opened), _training(ledger, opened)
        track_dir = home / "adapters"

        def write(folder: Path) -> None:
            counted[:] = timed(
                "write", lambda: writing.write(folder, ledger, opened, manifest, None, training)
            )

        published = publish.publish(track_dir, opened.name, write, manifest)
        timed("record_exposures", lambda: ledger.record_exposures(opened.round_id, counted))
        ledger.close(
            lease, opened, state=RoundState.PROMOTED, training={}, losses={}, manifest=published,
            verdict={"promoted": True, "reason": "bench", "low": 0.01},
        )  # fmt: skip
        folder = track_dir / opened.name
        receipt, _ = timed("verify", lambda: verifying.verify(folder))
        with database.transaction() as tx:
            found = timed(
                "which_adapters",
                lambda: answered(tx, contents_of(tx, _a_file(folder), home / "ingest", home)),
            )
        assert found["adapters"]
        data = (folder / NAME).read_bytes()
        return {
            "contents": sum(receipt.contents.values()),
            "bytes": len(data),
            "zstd_bytes": len(zstd.compress(data)),
            **timed.figures,
            "write_peak_bytes": _peak(lambda: writing.write(home, ledger, opened, manifest, None, training)),
            "verify_peak_bytes": _peak(lambda: verifying.read(folder)),
        }
    finally:
        postgres.stop()


def _manifest(opened: Round) -> dict[str, Any]:
    return {
        "track": RECIPE.name, "round": opened.number, "recipe": RECIPE.model_dump(mode="json"),
        "parent": None, "base_model": RECIPE.base_model, "base_revision": None,
        "snapshot_hash": opened.snapshot_hash, "created_at": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip


def _training(ledger: Ledger, opened: Round) -> writing.Training:
    exposures = {}
    for role in ContentRole:
        for row in ledger.contents_of(opened.round_id, role) if role in LEARNED else ():
            exposures[row.content_id] = exposure = Exposure()
            for first in range(1, row.lines, 1 + row.lines // 3):
                exposure.add(first, min(row.lines, first + row.lines // 3), 300, times=3)
    return writing.Training(steps=1000, is_counted=True, exposures=exposures, planted={})


def _a_file(folder: Path) -> str:
    """SOURCE/PATH of a content that was trained on."""
    with (folder / NAME).open(encoding="utf-8") as file:
        content = next(json.loads(line) for line in file if '"seen":' in line)
    return "/".join(content["files"][0][:2])


def _peak(work: Callable[[], Any]) -> int:
    """Bytes that Python allocated at most during the work, beyond what it held before."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    answer = work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del answer
    return peak - before


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_CONTENTS:,} contents")
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="ratchet-bench-"))
    try:
        print(json.dumps(run(QUICK_CONTENTS if arguments.quick else CONTENTS, home)))
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
