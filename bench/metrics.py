"""How fast are the pages and the scrapes, whatever the number of rows, and what do they cost?

    .venv/bin/python bench/metrics.py [--quick] [--rows N]

On a PostgreSQL server of its own with the history of tests/metrics_history and 200,000 contents besides,
while a round runs, against gunicorn as production has it, over a socket, by a client that asks 100 times a
second:

- `p50_ms`, `p99_ms`: every page and both formats of /metrics, all answers together; the table above has them
  apart;
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
from services.cli.postgres import EmbeddedPostgres  # noqa: E402
from services.core import db  # noqa: E402
from services.core.settings import Target  # noqa: E402
from services.metrics.stream.hub import CAP  # noqa: E402
from tests.integration.metrics.server import running, wait_until  # noqa: E402
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
STARTS, VISITS = 9, 3


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
    with closing(db.Database(owner)) as database, running(metrics) as server:
        fill(database)
        begun = time.monotonic()
        add_rows(database, rows)
        print(f"{rows:,} contents added in {time.monotonic() - begun:.0f} s")
        wait_until(lambda: server.get("/health/ready")[0] == 200)
        with round_runs(database):
            every = [
                value for path, accept in PATHS for value in _told(server.url, path, accept, seconds).values
            ]
            with streams(server.url, CAP):
                health = _told(server.url, "/health", JSON, seconds, f" with {CAP} streams")
            painted, violations = first_paint_ms(server.url), axe_violations(server.url)
    everything = Latencies(tuple(every))
    return {
        "p50_ms": everything.p50,
        "p99_ms": everything.quantile(0.99),
        "health_p99_ms_64_streams": health.quantile(0.99),
        "first_paint_ms": painted,
        "axe_violations": violations,
    }


def _told(address: str, path: str, accept: str, seconds: float, when: str = "") -> Latencies:
    latencies(address, path, 0.5, accept)  # what nobody has asked for in a while is read first
    found = latencies(address, path, seconds, accept)
    kind = accept.split(";", maxsplit=1)[0].split(",", maxsplit=1)[0]
    print(
        f"{path + when:32} {kind:28} {len(found.values):5} answers"
        f"  p50 {found.p50:7.2f} ms  p99 {found.quantile(0.99):7.2f} ms  worst {max(found.values):7.2f} ms"
    )
    return found


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
