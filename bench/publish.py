"""Do readers ever see a mixed adapter, how long does a rollback take, is what is served what was tested?

    .venv/bin/python bench/publish.py [--quick]

On a PostgreSQL server of its own, with adapters of random weights:

- 100 promotions and rollbacks under 1,000 readers (bench/publish_readers.py), and a newly published adapter
  at every tenth; `mixed_reads` is the number of reads that broke the promise of docs/reference/adapters.md;
- rollbacks between adapters of Qwen2.5-14B's shapes at rank 256 in float32: all 48 layers would be 4.4 GB,
  here 11 of them, 1 GB, with --quick one, 92 MB. `rollback_s` is the median time until `current` has moved,
  `rollback_checked_s` until every byte of the champion was hashed, which `ratchet rollback` does afterwards;
- `parity_exact_match` and `promotion_to_served_s` come from bench/publish_served.py.

Ends with one line of JSON.
"""

import argparse
import importlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from bench import publish_readers  # noqa: E402
from services.cli.stack.postgres import EmbeddedPostgres  # noqa: E402
from services.core import db  # noqa: E402
from services.core.target import Target  # noqa: E402
from services.trainer import publish  # noqa: E402
from services.trainer.promotions.champions import Champions  # noqa: E402
from services.trainer.promotions.line import By  # noqa: E402
from tests import tiny_adapter  # noqa: E402

Figures = dict[str, float | int | None]
MOVES, READERS = 100, 1000
ROLLBACKS = 7
RANK, LAYERS, QUICK_LAYERS = 256, 11, 1
BENCH = By("bench", "to see")
SERVED = ("parity_exact_match", "promotion_to_served_s")
RECORD = """
    WITH round AS (
        INSERT INTO rounds (track, number, state, recipe, snapshot_hash, closed_at)
        VALUES (%(track)s, %(number)s, 'promoted', '{}', '', now()) RETURNING id)
    INSERT INTO adapters (track, round_id, directory, manifest)
    SELECT %(track)s, id, %(directory)s, %(manifest)s FROM round
"""


class Track:
    """A track whose rounds were published and recorded, and nothing trained."""

    def __init__(self, target: Target, database: db.Database, adapters: Path, name: str) -> None:
        self._target = target
        self.name = name
        self.dir = adapters / name
        self.champions = Champions(database, name, self.dir)
        self.rounds: list[str] = []
        self._execute("INSERT INTO tracks (name, recipe) VALUES (%(track)s, '{}')", track=name)

    def publish(self, write: Callable[[Path], None]) -> str:
        number = len(self.rounds) + 1
        name = f"round-{number:04d}"
        manifest = publish.publish(self.dir, name, write, {"track": self.name, "round": number})
        recorded = {"track": self.name, "number": number, "directory": name, "manifest": db.as_json(manifest)}
        self._execute(RECORD, **recorded)
        self.rounds.append(name)
        return name

    def _execute(self, statement: str, **values: object) -> None:
        with closing(db.connect(self._target)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(statement, values)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a smaller adapter to roll back to")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ratchet-publish-") as home:
        postgres = EmbeddedPostgres(Path(home) / "home")
        try:
            target = postgres.start()
            db.migrate(target)
            with closing(db.Database(target, application="bench", max_conn=2)) as database:
                figures = hammer(Track(target, database, Path(home), "read"))
                figures |= roll_back(
                    Track(target, database, Path(home), "large"), QUICK_LAYERS if asked.quick else LAYERS
                )
        finally:
            postgres.stop()
    print(json.dumps(figures | served(quick=asked.quick)))


def hammer(track: Track, pause_s: float = 0.0) -> Figures:
    """Promotions and rollbacks, in turn, while readers read, each of them every so often."""
    for number in range(1, 5):
        track.publish(partial(tiny_adapter.make, seed=number))
    track.champions.promote(track.rounds[0], BENCH)
    reading = publish_readers.Readers(track.dir, READERS, pause_s)
    seconds = []
    try:
        reading.wait()
        for number in range(MOVES):
            if number % 10 == 9:
                track.publish(partial(tiny_adapter.make, seed=100 + number))
            began = time.perf_counter()
            move(track, number)
            seconds.append(time.perf_counter() - began)
    finally:
        seen = reading.stop()
    for way, outcomes in seen.items():
        print(f"{way:12}{', '.join(f'{count:,} {what}' for what, count in sorted(outcomes.items()))}")
    return {
        "mixed_reads": publish_readers.faults(seen),
        "reads": publish_readers.reads(seen),
        "readers": sum(outcomes["readers"] for outcomes in seen.values()),
        "moves": len(seconds),
        "move_s": round(statistics.median(seconds), 4),
    }


def move(track: Track, number: int) -> None:
    """The newest or the second newest adapter is promoted; then back to where the champion was before."""
    if number % 2 == 0:
        present = track.champions.line().champion
        newest = [name for name in track.rounds[-2:] if present is None or name != present.directory]
        track.champions.promote(newest[-1], BENCH)
    else:
        track.champions.roll_back(BENCH)


def roll_back(track: Track, layers: int) -> Figures:
    """Between two large adapters, there and back."""

    def write(folder: Path) -> None:
        tiny_adapter.make(folder, rank=RANK, layers=layers, linear=tiny_adapter.QWEN_14B)

    for _ in range(2):
        track.champions.promote(track.publish(write), BENCH)
    size = (track.dir / track.rounds[0] / "adapter_model.safetensors").stat().st_size
    moved, checked = [], []
    for _ in range(ROLLBACKS):
        began = time.perf_counter()
        track.champions.roll_back(BENCH, track.rounds[0])
        moved.append(time.perf_counter() - began)
        assert track.champions.examine(BENCH) is None
        checked.append(time.perf_counter() - began)
        track.champions.promote(track.rounds[1], BENCH)
    rate = size / (statistics.median(checked) - statistics.median(moved)) / 1e9
    print(f"rollback to {size / 1e9:.2f} GB: {max(moved):.3f} s at most; then hashed at {rate:.2f} GB/s")
    return {
        "rollback_s": round(statistics.median(moved), 4),
        "rollback_checked_s": round(statistics.median(checked), 4),
        "adapter_bytes": size,
    }


def served(*, quick: bool) -> Figures:
    """What bench/publish_served.py measures; nothing where it is not there."""
    try:
        module = importlib.import_module("bench.publish_served")
    except ModuleNotFoundError as exc:
        if exc.name != "bench.publish_served":
            raise
        print("not measured, for bench/publish_served.py is not there: " + ", ".join(SERVED))
        return dict.fromkeys(SERVED)
    return dict(module.measure(quick=quick))


if __name__ == "__main__":
    main()
