"""How fast are the pages and the scrapes, whatever the number of rows, and what do they cost?

    .venv/bin/python bench/metrics.py [--quick] [--rows N]

On a PostgreSQL server of its own with the history of tests/metrics_history and 200,000 contents besides,
while a round runs, against gunicorn as production has it, over a socket, by a client that asks 100 times a
second:

- `p50_ms`, `p99_ms`, `cpu_ms`: every page and both formats of /metrics, all answers together, and what one
  takes of the service's processor time; the table above has them apart;
- `floor_ratio`, `floor_cpu_ms`: the first against, and the last of, a bare Flask's answer under the same
  gunicorn (bench/metrics_floor.py), asked for by turns with each path: a machine busy with other work slows
  both down;
- `health_p99_ms_64_streams`: /health while 64 event streams are open and events come;
- `first_paint_ms`: until Chromium paints the slowest page, with empty caches, the best of three visits;
- `axe_violations`: what axe-core finds on every page in both themes; both are null without Chromium;
- `js_kb`: all scripts together, as they are served; `cli_start_s`: `ratchet --help`, the median of nine.

Ends with one line of JSON.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from pydantic import SecretStr  # noqa: E402

from bench.metrics_load import (  # noqa: E402
    PROMETHEUS,
    Latencies,
    add_rows,
    latencies,
    round_runs,
    streams,
)
from services.cli.stack.postgres import EmbeddedPostgres  # noqa: E402
from services.core import db  # noqa: E402
from services.core.target import Target  # noqa: E402
from services.metrics.stream.hub import CAP  # noqa: E402
from tests.integration.metrics.server import Running, running, wait_until  # noqa: E402
from tests.metrics_history import TRACK, fill  # noqa: E402

ROWS, QUICK_SECONDS, SECONDS = 200_000, 3.0, 15.0  # of each path
PASSWORD = "of-the-bench"
NO_DURABILITY = {"fsync": "off", "synchronous_commit": "off"}
HTML, JSON = "text/html", "application/json"
PATHS = (
    ("/metrics", PROMETHEUS),
    ("/metrics", JSON),
    ("/", HTML),
    ("/ingest", HTML),
    ("/rounds", HTML),
    (f"/rounds/{TRACK}/6", HTML),
    ("/adapters", HTML),
    ("/alerts", HTML),
)
FLOOR = "bench.metrics_floor"
STARTS, VISITS, TURNS = 9, 3, 3


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="3 s a path instead of 15")
    parser.add_argument("--rows", type=int, default=ROWS, help="contents besides the history")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ratchet-bench-metrics-") as home:
        postgres = EmbeddedPostgres(Path(home), NO_DURABILITY)
        try:
            figures = _measure(postgres.start(), asked.rows, QUICK_SECONDS if asked.quick else SECONDS)
        finally:
            postgres.stop()
    print(json.dumps({**figures, "js_kb": js_kb(), "cli_start_s": cli_start_s()}))
    return 0


def _measure(owner: Target, rows: int, seconds: float) -> dict[str, float | int | None]:
    db.migrate(owner, {"ratchet_metrics": PASSWORD})
    metrics = owner.model_copy(update={"user": "ratchet_metrics", "password": SecretStr(PASSWORD)})
    floor_server = running(metrics, FLOOR)
    with closing(db.Database(owner)) as database, running(metrics) as server, floor_server as bare:
        fill(database)
        begun = time.monotonic()
        add_rows(database, rows)
        print(f"{rows:,} contents added in {time.monotonic() - begun:.0f} s")
        wait_until(lambda: server.get("/health/ready")[0] == 200)
        with round_runs(database):
            every, floor = Latencies(()), Latencies(())
            for path, accept in PATHS:
                found, least = _in_turns(server, path, accept, bare, seconds)
                every, floor = every + found, floor + least
            with streams(server.url, CAP):
                health = latencies(server, "/health", seconds, JSON)
                _tell(f"/health with {CAP} streams", JSON, health)
            painted, violations = first_paint_ms(server.url), axe_violations(server.url)
    return {
        "p50_ms": every.p50,
        "p99_ms": every.quantile(0.99),
        "cpu_ms": every.cpu,
        "floor_ratio": round(every.p50 / floor.p50, 2),
        "floor_cpu_ms": floor.cpu,
        "health_p99_ms_64_streams": health.quantile(0.99),
        "first_paint_ms": painted,
        "axe_violations": violations,
    }


def _in_turns(
    server: Running, path: str, accept: str, bare: Running, seconds: float
) -> tuple[Latencies, Latencies]:
    """Of a path for so long, and of the floor for as long, by turns."""
    latencies(server, path, 0.5, accept)  # what nobody has asked for in a while is read first
    found, floor = Latencies(()), Latencies(())
    for _ in range(TURNS):
        found += latencies(server, path, seconds / TURNS, accept)
        floor += latencies(bare, "/health/live", seconds / TURNS)
    _tell(path, accept, found, f"  floor: p50 {floor.p50:5.2f} ms, {floor.cpu:5.2f} ms of processor")
    return found, floor


def _tell(what: str, accept: str, found: Latencies, beside: str = "") -> None:
    kind = accept.split(";", maxsplit=1)[0].split(",", maxsplit=1)[0]
    print(
        f"{what:24} {kind:28} {len(found.values):5} answers  p50 {found.p50:6.2f} ms"
        f"  p99 {found.quantile(0.99):6.2f} ms  worst {max(found.values):6.2f} ms"
        f"  {found.cpu:5.2f} ms of processor{beside}",
        flush=True,
    )


def first_paint_ms(address: str) -> float | None:
    """None where there is no Chromium to ask."""
    try:
        from tests.acceptance import browser
    except ImportError:
        return None
    if not browser.CHROMIUM:
        return None
    with browser.chromium() as opened:
        pages = [path for path, accept in PATHS if accept == HTML]
        return max(min(browser.first_paint(opened, address + path) for _ in range(VISITS)) for path in pages)


def axe_violations(address: str) -> int | None:
    """How many elements of how many pages break a rule; None where there is no Chromium to ask."""
    try:
        from tests.acceptance import browser
    except ImportError:
        return None
    return len(browser.axe_violations(address)) if browser.CHROMIUM else None


def js_kb() -> float:
    """All scripts that pages may load, in kilobytes."""
    scripts = (PROJECT / "services" / "metrics" / "static").rglob("*.js")
    return round(sum(script.stat().st_size for script in scripts) / 1000, 1)


def cli_start_s() -> float:
    """Seconds until `ratchet --help` has ended, the median."""
    command = [sys.executable, "-m", "services.cli.main", "--help"]
    if (installed := PROJECT / ".venv" / "bin" / "ratchet").exists():
        command = [str(installed), "--help"]
    return round(statistics.median(_seconds(lambda: _run(command)) for _ in range(STARTS)), 3)


def _run(command: list[str]) -> None:
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)


def _seconds(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
