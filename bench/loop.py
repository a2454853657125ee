"""The whole loop from nothing: start, ingest, train, judge, publish. Ends with one line of JSON.

    .venv/bin/python bench/loop.py --quick

Runs `ratchet up` in a temporary home with an empty ingest folder, which it fills with demonstration
code, and stops when the first round is promoted or refused. Looks only where users look: the metrics
service, the pid files, the adapters folder. `--quick` is the demo recipe; without it, RECIPE decides.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from services.cli.stack import session  # noqa: E402
from services.cli.stack.processes import PidFiles  # noqa: E402

QUICK_POLL, POLL = 0.2, 1.0  # seconds, until the first content and after
TIMEOUT = 15 * 60.0  # seconds for the whole loop
STOP_TIMEOUT = 90.0  # seconds
TABLE = 2.0  # seconds `ratchet up` gets to print the round's table before it is stopped
PARTS = ("trainer", "processor", "metrics", "postgres", "supervisor")


@dataclass
class Loop:
    """One run of the stack, and what was measured of it."""

    home: Path
    port: int
    started: float = field(default_factory=time.monotonic)
    figures: dict[str, float | None] = field(default_factory=dict)
    created: dict[str, float] = field(default_factory=dict)  # seconds since the epoch

    def note(self, name: str, value: float) -> None:
        """Keep the first value of a figure."""
        self.figures.setdefault(name, round(value, 3))

    def look(self) -> dict[str, Any] | None:
        """Note what can be seen now; the first closed round, once there is one."""
        self._look_at_processes()
        elapsed = time.monotonic() - self.started
        if self._get("/health/live") is not None and "metrics" in self.created:
            self.note("metrics_start_s", time.time() - self.created["metrics"])
        if self._get("/health/ready") is not None and "metrics" in self.created:
            self.note("health_ready_s", time.time() - self.created["metrics"])
            self.note("seconds_to_ready", elapsed)
        state = self._get("/metrics?format=json")
        if state is None or not state.get("ingest"):
            return None
        if state["ingest"]["contents"]:
            self.note("seconds_to_first_content", elapsed)
        self._look_at_beats(state["services"])
        return next((row for row in state["rounds"] if row["closed_at"]), None)

    def _look_at_processes(self) -> None:
        """Creation and largest memory of each part: metrics with its worker, PostgreSQL as PSS."""
        for record in PidFiles(self.home).all():
            if record.name not in PARTS or (process := record.process()) is None:
                continue
            self.created.setdefault(record.name, record.created)
            try:
                memory = _megabytes(record.name, process)
            except psutil.Error:
                continue
            name = "daemon_rss_mb" if record.name == "trainer" else f"{record.name}_rss_mb"
            self.figures[name] = round(max(memory, self.figures.get(name) or 0.0), 1)

    def _look_at_beats(self, beats: list[dict[str, Any]]) -> None:
        for beat in beats:
            name = str(beat["service"])
            if name in self.created:
                first = datetime.fromisoformat(beat["started_at"]).timestamp()
                self.note(f"{'daemon' if name == 'trainer' else name}_start_s", first - self.created[name])

    def _get(self, path: str) -> dict[str, Any] | None:
        """The JSON of a 200; None for any other answer or none."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                document = json.load(answer)
        except (OSError, ValueError, urllib.error.HTTPError):
            return None
        return document if isinstance(document, dict) else None

    def judge(self, closed: dict[str, Any]) -> None:
        """The figures of the round that ended."""
        verdict = closed["verdict"] or {}
        bits = verdict.get("bits_per_byte") or {}
        training = closed["training"] or {}
        self.figures |= {
            "seconds_to_adapter": round(time.monotonic() - self.started, 1),
            "bits_per_byte_before": bits.get(verdict.get("against") or "base"),
            "bits_per_byte_after": bits.get("candidate"),
            "improvement": verdict.get("improvement"),
            "promoted": int(closed["state"] == "promoted"),
            "held_out_files": verdict.get("held_out_files"),
            "train_seconds": training.get("seconds"),
            "tokens_per_s": training.get("tokens_per_s"),
            "steps": training.get("steps"),
        }
        seconds = session.read(self.home)["seconds"]
        self.figures |= {f"{name}_start_s": value for name, value in seconds.items()}


def _megabytes(name: str, process: psutil.Process) -> float:
    if name == "postgres":
        server = [process, *process.children(recursive=True)]
        return sum(float(one.memory_full_info().pss) for one in server) / 1e6
    family = [process, *process.children()] if name == "metrics" else [process]
    return sum(float(one.memory_info().rss) for one in family) / 1e6


def measure(directory: Path, *, quick: bool, timeout: float) -> dict[str, float | None]:
    """Run the loop below `directory`; its figures. Raises SystemExit when no round ends in time."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    own = {
        "RATCHET_HOME": str(directory / "home"),
        "INGEST_DIR": str(directory / "ingest"),
        "ADAPTERS_DIR": str(directory / "adapters"),
        "METRICS_PORT": str(port),
        "DATABASE_URL": "",
        "POSTGRES_HOST": "",
    }
    environment = {**os.environ, **own, **({"RECIPE": "demo"} if quick else {})}
    command = [sys.executable, "-m", "services.cli.main", "up"]
    loop = Loop(directory / "home", port)
    stack = subprocess.Popen(command, cwd=PROJECT, env=environment)
    try:
        closed = None
        while closed is None:
            if stack.poll() is not None:
                raise SystemExit(f"`ratchet up` ended with status {stack.returncode} before a round did")
            if time.monotonic() - loop.started > timeout:
                raise SystemExit(f"no round ended within {timeout:.0f} s")
            time.sleep(POLL if "seconds_to_first_content" in loop.figures else QUICK_POLL)
            closed = loop.look()
        loop.judge(closed)
        time.sleep(TABLE)
    finally:
        begun = time.monotonic()
        _stop(stack, environment)
    loop.note("stop_seconds", time.monotonic() - begun)
    return loop.figures


def _stop(stack: subprocess.Popen[bytes], environment: dict[str, str]) -> None:
    if stack.poll() is None:
        stack.send_signal(signal.SIGINT)
    try:
        stack.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        stack.kill()
    subprocess.run(
        [sys.executable, "-m", "services.cli.main", "down"], cwd=PROJECT, env=environment, check=False
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the loop from nothing to the first judged adapter.")
    parser.add_argument(
        "--quick", action="store_true", help="the demo recipe: at most 15 minutes on two cores"
    )
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds to give up after")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ratchet-loop-") as directory:
        figures = measure(Path(directory), quick=options.quick, timeout=options.timeout)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
