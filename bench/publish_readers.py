"""Readers of one track's champion, many at once, each of which checks every byte that it reads.

    .venv/bin/python bench/publish_readers.py TRACK_DIR THREADS PAUSE FILE

is one process of them: it makes FILE when each thread has read once, reads until its standard input ends,
each thread with so many seconds between two reads, and prints what its threads saw as one line of JSON.
`Readers` runs several. The ways to read, half of the threads the first:

- resolved: `services.trainer.publish.resolve` once, then every file in the folder it named;
- descriptor: `current` opened once as a directory, then every file below that descriptor (openat);
- naive: every file through `current`, as if it never moved.

A read is *whole* when manifest and files are those of one adapter, *mixed* when a whole file is of another
one than the manifest, *partial* when a file is no published one, *missing* when one is not there. Of the
naive way only partial and missing are broken promises: it is told here how often it is mixed.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from services.trainer import publish  # noqa: E402

Opener = Callable[[str], bytes]  # the content of a file of the champion, by its name
Seen = dict[str, Counter[str]]  # by way of reading: outcome → times; "readers" → threads that read at all
PROCESSES = 2
START_TIMEOUT = 60.0  # seconds until every reader has read once
FAULTS = ("mixed", "partial", "missing")
PROMISED = ("resolved", "descriptor")


class Readers:
    """So many threads over a few processes, until `stop`."""

    def __init__(self, track_dir: Path, count: int, pause_s: float = 0.0) -> None:
        command = [sys.executable, __file__, str(track_dir), str(count // PROCESSES), str(pause_s)]
        self._started = track_dir.parent / f"{track_dir.name}-readers"
        self._started.mkdir(exist_ok=True)
        self._processes = [
            subprocess.Popen(
                [*command, str(self._started / str(number))],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT, text=True,
            )
            for number in range(PROCESSES)
        ]  # fmt: skip

    def wait(self) -> None:
        """Until every reader has read once."""
        deadline = time.monotonic() + START_TIMEOUT
        while len(list(self._started.iterdir())) < PROCESSES:
            if time.monotonic() > deadline or any(process.poll() for process in self._processes):
                self.stop()
                raise TimeoutError("the readers did not start")
            time.sleep(0.05)

    def stop(self) -> Seen:
        """What all of them saw."""
        total: Seen = {}
        for process in self._processes:
            output, _ = process.communicate()
            for way, outcomes in (json.loads(output) if output else {}).items():
                total.setdefault(way, Counter()).update(outcomes)
        return total


def faults(seen: Seen) -> int:
    """Reads that broke a promise."""
    promised = sum(seen[way][fault] for way in PROMISED for fault in FAULTS)
    return promised + seen["naive"]["partial"] + seen["naive"]["missing"]


def reads(seen: Seen) -> int:
    return sum(count for outcomes in seen.values() for what, count in outcomes.items() if what != "readers")


def look(track_dir: Path, way: str) -> str:
    """Read the champion once: whole, mixed, partial or missing."""
    if way == "descriptor":
        descriptor = os.open(track_dir / publish.CURRENT, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return _judged(track_dir, lambda name: _below(descriptor, name))
        finally:
            os.close(descriptor)
    folder = publish.resolve(track_dir) if way == "resolved" else track_dir / publish.CURRENT
    return _judged(track_dir, lambda name: (folder / name).read_bytes())


def _judged(track_dir: Path, content: Opener) -> str:
    try:
        manifest = json.loads(content(publish.MANIFEST))
        for name, expected in manifest["files"].items():
            found = hashlib.sha256(content(name)).hexdigest()
            if found != expected:
                return "mixed" if found in _published(track_dir, name) else "partial"
    except FileNotFoundError:
        return "missing"
    except ValueError:
        return "partial"
    return "whole"


def _published(track_dir: Path, name: str) -> set[str]:
    manifests = [json.loads(path.read_bytes()) for path in track_dir.glob(f"round-*/{publish.MANIFEST}")]
    return {manifest["files"].get(name) for manifest in manifests}


def _below(descriptor: int, name: str) -> bytes:
    with open(name, "rb", opener=lambda path, flags: os.open(path, flags, dir_fd=descriptor)) as file:
        return file.read()


def main() -> None:
    track_dir, count, pause_s, started = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    ways = ("resolved", "descriptor", "resolved", "naive")
    threading.stack_size(256 * 1024)
    stop, all_read = threading.Event(), threading.Barrier(count + 1)
    seen: list[tuple[str, Counter[str]]] = [(ways[number % len(ways)], Counter()) for number in range(count)]

    def read(way: str, outcomes: Counter[str]) -> None:
        outcomes[look(track_dir, way)] += 1
        all_read.wait()
        while not stop.wait(pause_s):
            outcomes[look(track_dir, way)] += 1

    threads = [threading.Thread(target=read, args=each) for each in seen]
    for thread in threads:
        thread.start()
    all_read.wait()
    Path(started).touch()
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    total: dict[str, Any] = {way: Counter() for way in ways}
    for way, outcomes in seen:
        total[way].update(outcomes, readers=1)
    print(json.dumps(total))


if __name__ == "__main__":
    main()
