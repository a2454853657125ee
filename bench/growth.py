"""How ingestion grows: its rate, its memory and the database at 10,000, 100,000 and 1,000,000 files.

    .venv/bin/python bench/ingest.py --growth --sizes 10000,100000,1000000 --workers 16 --seconds-limit 540

The files are grown from real ones: in each copy of a file all words but the reserved ones are spelt with
letters of its own. Length, layout, syntax and figures stay what they were, yet no two copies are near
duplicates: the hardest case for the store, which keeps nearly all. Files are written before a processor
sees them, and not while one is measured.

The *rate at* a size is that of the last files up to it (WINDOW), in files per second and per CPU second,
PostgreSQL's included. What does not end within the limit is taken up by the next call with the same --home.
"""

import argparse
import keyword
import os
import random
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil

from bench import corpus as corpora
from bench import full, same_steps
from bench.full import say
from services.cli.stack.postgres import EmbeddedPostgres
from services.core import db

WINDOW = 10_000  # files
SOURCE_FILES = 10_000
DIRECTORY_FILES = 500
BASE_FILES = 6_000  # real ones, of which the others are grown
BASE_BYTES = (500, 16_000)  # smaller and larger ones are left out: a million must fit on the disk
WARM_FILES = 100  # for each worker, before anything is measured
IDLE_CPU = 0.1  # of a core: below that all processors rest
VOWELS, CONSONANTS = b"aeiou", b"bcdfghjklmnpqrstvwxyz"
WORD = re.compile(rb"[A-Za-z_]\w{2,}")
RESERVED = frozenset(word.encode() for word in [*keyword.kwlist, *keyword.softkwlist]) | frozenset(
    b"""abstract alignas alignof and_eq any arguments asm assert async auto await bitand bitor boolean break
    byte case catch char chan class co_await co_return co_yield compl concept const const_cast
    consteval constexpr constinit constructor continue crate debugger declare decltype def default
    defer define defined delete do double dyn dynamic_cast elif else endif enum error eval event
    explicit export extends extern false final finally float fn for foreach friend func function get
    global goto if ifdef ifndef impl implements implicit import in include include_next inline
    instanceof int interface internal is keyof let lock long loop macro_rules map match mod module
    move mut mutable namespace native new nil noexcept not_eq null nullptr object of operator or_eq
    out override package params pragma private protected protocol public range readonly ref register
    reinterpret_cast require requires return select self set short signed sizeof static
    static_assert static_cast strictfp string struct super switch symbol synchronized template this
    thread_local throw throws trait transient true try type typedef typeid typename typeof undef
    undefined union unknown unsafe unsigned use using var virtual void volatile warning wchar_t
    where while with xor_eq yield""".split()
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """What was measured at a size."""

    files: int
    files_per_s: float
    files_per_cpu_s: float
    contents: int
    processor_rss_mb: float  # of all processors, without their judges
    judge_rss_mb: float  # of the largest judge
    database_bytes_per_file: float
    seconds: float  # since the last size, the files' writing included


class Growth:
    """A folder that grows and a database that follows; both stay for the next call."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._home: Path = options.home / "growth"
        self._ingest = self._home / "ingest"
        self.workers: int = options.workers or len(os.sched_getaffinity(0))
        self.processors: int = options.processors
        self._deadline = time.monotonic() + options.seconds_limit
        self._texts = _base_texts(options)
        self._running: list[psutil.Process] = []
        self._first: tuple[int, float] | None = None  # files and bytes resident before the growth

    def run(self, sizes: list[int]) -> Iterator[Point]:
        """Grow to each size; stops early, and says so, when the time is over."""
        self._ingest.mkdir(parents=True, exist_ok=True)
        for half_written in self._ingest.glob(".*"):
            shutil.rmtree(half_written)
        postgres = EmbeddedPostgres(self._home / "home")
        with ExitStack() as stack:
            stack.callback(postgres.stop)
            target = postgres.start()
            db.migrate(target)
            self._server = psutil.Process(postgres.pid)
            self._connection = stack.enter_context(closing(db.connect(target)))
            self._connection.autocommit = True
            for _ in range(self.processors):
                running = full.processor(target, self._ingest, self.workers)
                self._running.append(stack.enter_context(running))
            try:
                self._warm()
                for size in sizes:
                    if self.files() >= size:
                        say(f"{size:,} files: {self.files():,} are there from an earlier call")
                    else:
                        yield self._reach(size)
            except TimeoutError as exc:
                say(f"out of time, {exc}; another call goes on from here")

    def rss_bytes_per_file(self) -> float | None:
        """Growth of the processors' memory since the first window; None while nothing was added since."""
        if self._first is None or self.files() <= self._first[0]:
            return None
        return round((self._rss() - self._first[1]) / (self.files() - self._first[0]), 1)

    def files(self) -> int:
        """Grown files that the processors may see."""
        return sum(int(folder.name.rpartition("-")[2]) for folder in self._ingest.glob("grown-*"))

    def _warm(self) -> None:
        """What an earlier call left is finished, and all judges have started."""
        warm = self._write("warm", time.time_ns(), WARM_FILES * self.workers * self.processors)
        left = [folder.name for folder in self._ingest.glob("grown-*")]
        self._release([warm], left)

    def _reach(self, size: int) -> Point:
        begun, there = time.monotonic(), self.files()
        filling = max(there, size - WINDOW)
        fill = [
            self._write("grown", start, min(SOURCE_FILES, filling - start))
            for start in range(there, filling, SOURCE_FILES)
        ]
        last = [self._write("grown", filling, size - filling)]
        if fill:
            self._release(fill)
        cpu, at = self._cpu(), time.monotonic()
        done = self._release(last)
        cpu = self._cpu() - cpu
        self._first = self._first or (self.files(), self._rss())
        contents, database = self._row(
            "SELECT (SELECT count(*) FROM contents) AS contents, pg_database_size(current_database()) AS size"
        )
        return Point(
            files=size,
            files_per_s=round((size - filling) / (done - at), 1),
            files_per_cpu_s=round((size - filling) / cpu, 1),
            contents=contents,
            processor_rss_mb=round(self._rss() / 1e6, 1),
            judge_rss_mb=round(self._judge_rss() / 1e6, 1),
            database_bytes_per_file=round(database / size, 1),
            seconds=round(time.monotonic() - begun, 1),
        )

    def _write(self, kind: str, start: int, count: int) -> str:
        """Grow so many files into a source that the processors do not see yet; its name."""
        name = f"{kind}-{start:09d}-{count}"
        hidden = self._ingest / f".{name}"
        parts = [
            (hidden / f"part{at // DIRECTORY_FILES:04d}", start + at, min(DIRECTORY_FILES, count - at))
            for at in range(0, count, DIRECTORY_FILES)
        ]
        with get_context("fork").Pool(initializer=_hold, initargs=(self._texts,)) as pool:
            pool.starmap(_write_part, parts)
        self._check()
        return name

    def _release(self, names: list[str], also: list[str] | None = None) -> float:
        """Show sources to the processors and wait until all is stored; when that was (monotonic seconds)."""
        since = self._row("SELECT clock_timestamp() AS now")[0]
        for name in names:
            (self._ingest / f".{name}").rename(self._ingest / name)
        full.wait_until_done(
            self._connection, self._running, [*names, *(also or [])], since=since, deadline=self._deadline
        )
        done = time.monotonic()
        while self._cpu_share() > IDLE_CPU:  # vacuum, a rescan of what was there: no part of the next window
            self._check()
        return done

    def _check(self) -> None:
        if time.monotonic() > self._deadline:
            raise TimeoutError(f"{self.files():,} files are given to the processors")

    def _cpu(self) -> float:
        return sum(map(full.family_cpu_seconds, [*self._running, self._server]))

    def _cpu_share(self) -> float:
        """Of a core, over half a second."""
        before = self._cpu()
        time.sleep(0.5)
        return (self._cpu() - before) / 0.5

    def _rss(self) -> float:
        return sum(float(process.memory_info().rss) for process in self._running)

    def _judge_rss(self) -> float:
        judges = [child for process in self._running for child in process.children()]
        return max((float(judge.memory_info().rss) for judge in judges), default=0.0)

    def _row(self, query: str) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchone()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """A point for each size, and the figures that the targets name."""
    growth = Growth(options)
    points: list[Point] = []
    rss: float | None = None
    for point in growth.run(sorted(map(int, options.sizes.split(",")))):
        points.append(point)
        rss = growth.rss_bytes_per_file()
        say(
            f"at {point.files:,} files: {point.files_per_s:,.0f} files/s,"
            f" {point.files_per_cpu_s:,.0f} files/CPU-s, in the database"
            f" {point.database_bytes_per_file:,.0f} bytes a file, processor {point.processor_rss_mb:,.0f} MB"
        )
    first, last = (points[0], points[-1]) if points else (None, None)
    return {
        "rate_vs_first": last and first and round(last.files_per_cpu_s / first.files_per_cpu_s, 3),
        "wall_rate_vs_first": last and first and round(last.files_per_s / first.files_per_s, 3),
        "rss_bytes_per_file": rss,
        "points": [asdict(point) for point in points],
        "workers": growth.workers,
        "processors": growth.processors,
    }


# The files


def grown(data: bytes, number: int) -> bytes:
    """A text like this one in all but its words, which are others for every number."""
    rng = random.Random(number)
    spelling = bytearray(range(256))
    for letters in (VOWELS, CONSONANTS):
        others = rng.sample(letters, len(letters))
        for letter, other in zip(letters, others, strict=True):
            spelling[letter] = other
            spelling[letter - 32] = other - 32  # in capitals
    table = bytes(spelling)
    return WORD.sub(lambda word: word[0] if word[0] in RESERVED else word[0].translate(table), data)


_held: list[tuple[str, bytes]] = []  # in each process that writes files: suffix and bytes of real ones


def _hold(texts: list[tuple[str, bytes]]) -> None:
    _held[:] = texts


def _write_part(folder: Path, first: int, count: int) -> None:
    folder.mkdir(parents=True)
    for number in range(first, first + count):
        suffix, data = _held[number % len(_held)]
        (folder / f"file{number:09d}{suffix}").write_bytes(grown(data, number))


def _base_texts(options: argparse.Namespace) -> list[tuple[str, bytes]]:
    """Suffix and bytes of real files that pass the filters, neither small nor large ones, shuffled."""
    corpus = corpora.gather(options.paths, BASE_FILES, options.home / "base", options.home / "sdists")
    texts = []
    for name in corpus.files:
        data = (corpus.folder / name).read_bytes()
        if BASE_BYTES[0] <= len(data) <= BASE_BYTES[1] and same_steps.look(name, data):
            texts.append((Path(name).suffix, data))
    shutil.rmtree(corpus.folder)
    random.Random(corpora.SEED).shuffle(texts)
    mean = sum(len(data) for _, data in texts) / max(1, len(texts))
    say(f"growing from {len(texts):,} real files of {mean:,.0f} bytes on average")
    return texts
