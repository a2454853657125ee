"""The real processor on an ingest folder where everything is hostile, every system call of it watched."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from psycopg2 import extensions
from pydantic import SecretStr

from services.core import db
from services.core.settings import PROJECT
from services.core.target import Target
from tests.acceptance import hostile, hostile_archives
from tests.conftest import ROLE_PASSWORD, administer
from tests.integration.processor.conftest import code
from tests.unit.processor import hostile_texts

DATABASE = "hostile"
GOOD = "good.py"  # in every source that is a folder
MAX_RSS_BYTES = 512_000_000  # of the processor and its judges together
WATCHED = "trace=%file,%process,%network"
OPENED = re.compile(r"\b(?:open|openat|openat2|creat)(?:\(| resumed>).* = \d+<([^>]*)>")
STARTED = re.compile(r'\bexecve(?:at)?\("([^"]*)"(?!.* = -1 )')
CONNECTED = re.compile(r"\bconnect\(\d+[^,]*, \{(.*)\}")
SCANNED = re.compile(r": (\S+): \d+ stored, .* in ([\d.]+) s$", re.MULTILINE)
TEXTS_BYTES = 300_000

JUNK = {  # bytes that are no text, and what must be said of them
    "nul.py": (b"x = 1\0\n" * 30, "binary"),
    "late_nul.py": (b"total = total + value\n" * 500 + b"\0", "nul_byte"),
    "surrogate.py": (b"name = '\xed\xa0\x80'\n" * 30, "not_utf8"),
    "pair.py": (b"name = '\xed\xa0\xbd\xed\xb8\x80'\n" * 30, "not_utf8"),
    "overlong.py": (b"name = '\xc0\x80\xc0\xaf'\n" * 30, "not_utf8"),
    "utf16.py": (("name = 1\n" * 30).encode("utf-16"), "binary"),
    "one_line.py": (b"(" * 200_000, "minified"),
    "lines.py": (b"((((((((((\n" * 20_000, "low_alphabetic"),
    "bidi.py": (("\u202e\u2066\u200f\n" * 3_000).encode(), "short_lines_on_average"),
    "aliases.yaml": (b"a: &a [word, word, word]\n" * 900, "too_many_lines"),
    "dotted.toml": (b"a" + b".a" * 50_000 + b" = 1\n", "minified"),
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What the processor left behind."""

    files: dict[str, dict[str, str | None]]  # source → path → reason
    texts: str  # all that is stored, one after the other
    messages: str  # of its heartbeat
    log: str
    trace: list[str] | None  # system calls; None where strace is missing or may not trace
    most_rss_bytes: int
    cpu_seconds: float
    left: list[psutil.Process]
    target: Target


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, hostile.Expected]]:
    """The folder that holds `ingest` and `outside`, and what must become of each source."""
    folder = tmp_path_factory.mktemp("hostile")
    ingest, outside = folder / "ingest", hostile.outside(folder / "outside")
    sources: dict[str, hostile.Expected] = {}
    for name, make in hostile.TREES.items():
        source = ingest / name
        if name != "git":
            source.mkdir(parents=True)
        sources[name] = make(source, outside)
        (source / GOOD).write_text(code(name))
        sources[name][GOOD] = None
    junk = ingest / "junk"
    junk.mkdir()
    for name, (data, _) in JUNK.items():
        (junk / name).write_bytes(data)
    (junk / GOOD).write_text(code("junk"))
    sources["junk"] = {name: reason for name, (_, reason) in JUNK.items()} | {GOOD: None}
    (ingest / "linked").symlink_to(outside)
    (ingest / "linked.zip").symlink_to(outside / "canary.py")
    (ingest / GOOD).write_text(code("loose"))
    sources["."] = {"linked": "symlink", "linked.zip": "symlink", GOOD: None}
    return folder, sources | hostile_archives.archives(ingest, outside)


def write_texts(source: Path) -> None:
    """Texts made to be slow, each in a language of its own; beside a good file."""
    source.mkdir()
    extensions = list(hostile_texts.EXTENSIONS.values())
    for number, (name, text) in enumerate(hostile_texts.texts(TEXTS_BYTES)):
        (source / f"{name}.{extensions[number % len(extensions)]}").write_text(text)
    (source / GOOD).write_text(code("texts"))


@pytest.fixture(scope="module")
def run(expected, server: Target, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One run over all of it, to the end of the first scan of every source."""
    folder, sources = expected
    ingest = folder / "ingest"
    complaints = hostile.bad_options(ingest)
    write_texts(ingest / "texts")
    administer(
        server,
        f"CREATE DATABASE {DATABASE} TEMPLATE {template}",
        f"ALTER ROLE ratchet_processor LOGIN PASSWORD '{ROLE_PASSWORD}'",
    )
    target = server.model_copy(update={"dbname": DATABASE})
    swap = Swap(ingest / "swapped", folder / "outside")
    try:
        yield watch(folder, target, {*sources, "texts", "swapped"}, complaints, swap)
    finally:
        administer(server, f"DROP DATABASE {DATABASE} WITH (FORCE)")


class Swap(threading.Thread):
    """A directory that is now a directory and now a link to the outside, as often as can be."""

    def __init__(self, source: Path, outside: Path) -> None:
        super().__init__(daemon=True)
        self._source, self.done = source, threading.Event()
        for number in range(40):
            folder = source / f"turn{number:02}"
            folder.mkdir(parents=True)
            (folder / "canary.py").write_text(code(f"inside{number}"))
            (source / f"link{number:02}").symlink_to(outside)

    def run(self) -> None:
        while not self.done.is_set():
            for number in range(40):
                turn, link = self._source / f"turn{number:02}", self._source / f"link{number:02}"
                aside = self._source / f".aside{number:02}"
                for one, other in ((turn, aside), (link, turn), (turn, link), (aside, turn)):
                    one.rename(other)


def watch(folder: Path, target: Target, sources: set[str], complaints: dict[str, str], swap: Swap) -> Run:
    login = target.model_copy(update={"user": "ratchet_processor", "password": SecretStr(ROLE_PASSWORD)})
    trace, log = folder / "trace", folder / "log"
    environment = {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": f"postgresql://{login.user}:{ROLE_PASSWORD}@{login.host}:{login.port}/{login.dbname}",
        "INGEST_DIR": str(folder / "ingest"),
        "RESCAN_INTERVAL": "300",
        "PROCESSOR_WORKERS": "2",
    }
    command = [sys.executable, "-m", "services.processor"]
    if can_trace(folder):
        command = [
            "strace",
            "-f",
            "--seccomp-bpf",
            "-y",
            "-qq",
            "-s",
            "0",
            "-e",
            WATCHED,
            "-o",
            str(trace),
            *command,
        ]
    swap.start()
    with log.open("wb") as said:
        process = psutil.Popen(command, env=environment, cwd=PROJECT, stderr=said)
    meter = Meter(process)
    try:
        until_scanned(target, sources, complaints, meter)
        processor = meter.processor()
        everyone = [processor, *processor.children(recursive=True)]
        messages = str(select(target, "SELECT detail->>'message' FROM heartbeats"))
        processor.terminate()
        process.wait(60)
    finally:
        swap.done.set()
        for one in [*process.children(recursive=True), process] if process.is_running() else []:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait(60)
    swap.join(60)
    files: dict[str, dict[str, str | None]] = {}
    for name, path, reason in select(
        target, "SELECT s.name, f.path, f.reason FROM files f JOIN sources s ON s.id = f.source_id"
    ):
        files.setdefault(name, {})[path] = reason
    return Run(
        files,
        "\n".join(text for (text,) in select(target, "SELECT text FROM contents")),
        messages,
        log.read_text(errors="replace"),
        trace.read_text(errors="replace").splitlines() if trace.exists() else None,
        meter.most_rss_bytes,
        meter.cpu_seconds,
        [one for one in everyone if one.is_running() and one.status() != psutil.STATUS_ZOMBIE],
        target,
    )


def can_trace(folder: Path) -> bool:
    if shutil.which("strace") is None:
        return False
    command = ["strace", "-f", "--seccomp-bpf", "-o", str(folder / "probe"), "true"]
    return subprocess.run(command, check=False, capture_output=True, cwd="/").returncode == 0


class Meter:
    """What the processor and its judges use, sampled; strace itself does not count."""

    def __init__(self, process: psutil.Popen) -> None:
        self._process = process
        self._cpu: dict[psutil.Process, float] = {}
        self.most_rss_bytes = 0

    def processor(self) -> psutil.Process:
        return self._process.children()[0] if self._process.name() == "strace" else self._process

    def sample(self) -> None:
        rss = 0
        for one in [self._process, *self._process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if one.name() != "strace":
                    rss += one.memory_info().rss
                    self._cpu[one] = sum(one.cpu_times()[:2])
        self.most_rss_bytes = max(self.most_rss_bytes, rss)

    @property
    def cpu_seconds(self) -> float:
        return sum(self._cpu.values())


def until_scanned(target: Target, sources: set[str], complaints: dict[str, str], meter: Meter) -> None:
    end = time.monotonic() + 180
    with (
        closing(db.connect(target)) as connection,
        connection.cursor(cursor_factory=extensions.cursor) as cursor,
    ):
        connection.autocommit = True
        while time.monotonic() < end:
            for _ in range(10):
                meter.sample()
                time.sleep(0.03)
            cursor.execute("SELECT name FROM sources WHERE last_scanned_at IS NOT NULL")
            missing = sources - {name for (name,) in cursor.fetchall()}
            cursor.execute("SELECT detail->>'message' FROM heartbeats")
            said = str(cursor.fetchall())
            if not missing and all(name in said for name in complaints.values()):
                return
    pytest.fail(f"never scanned: {missing}; its heartbeat says {said}")


def select(target: Target, query: str) -> list[tuple]:
    with (
        closing(db.connect(target)) as connection,
        connection.cursor(cursor_factory=extensions.cursor) as cursor,
    ):
        cursor.execute(query)
        return cursor.fetchall()


def traced(run: Run) -> list[str]:
    if run.trace is None:
        pytest.skip("strace is missing or may not trace here")
    return run.trace


def found(pattern: re.Pattern[str], run: Run) -> set[str]:
    return {match[1] for call in traced(run) if (match := pattern.search(call))}


def test_each_thing_ends_in_its_reason(run: Run, expected) -> None:
    """And the good files beside it are stored."""
    wrong = {
        name: {
            path: (reason, row.get(path, "missing"))
            for path, reason in wanted.items()
            if row.get(path, "missing") != reason
        }
        for name, wanted in expected[1].items()
        if (row := run.files.get(name, {})) != wanted and name != "overlapping.zip"
    }
    assert {name: rows for name, rows in wrong.items() if rows} == {}
    assert {name: run.files[name].keys() - expected[1][name].keys() for name in wrong} == {}
    assert run.files["overlapping.zip"]["."] == "archive_too_large"


def test_slow_texts_end_in_an_ordinary_answer(run: Run) -> None:
    """No judge had to be killed for one, and none was lost."""
    files = run.files["texts"]
    assert len(files) == 1 + len(dict(hostile_texts.texts(1_000)))
    assert files[GOOD] is None
    assert [path for path, reason in files.items() if reason and reason.startswith("judge_")] == []


def test_options_that_cannot_be_meant_are_said(run: Run) -> None:
    """Their sources are left alone; options that are a link or a FIFO are nobody's."""
    assert "aliases.ratchet.yaml" in run.messages
    assert "huge.ratchet.yaml" in run.messages
    assert not run.files.keys() & {"aliases", "huge"}
    assert run.files["options"] == {GOOD: None}


def test_nothing_from_outside_is_stored(run: Run) -> None:
    """Not by links, archives, repositories, nor by a directory swapped for a link."""
    assert hostile.CANARY not in run.texts
    assert set(run.files["swapped"].values()) <= {None, "symlink", "special_file", "unreadable"}


def test_nothing_outside_is_opened(run: Run, expected) -> None:
    """No system call names a path outside by which it was found."""
    outside = str(expected[0] / "outside")
    assert [call for call in traced(run) if outside in call] == []
    assert not (expected[0] / "outside/ran").exists()


def test_only_code_of_ours_and_the_ingest_folder_are_opened(run: Run, expected) -> None:
    """Whatever else is opened belongs to Python, to the system's libraries or to the kernel."""
    prefixes = [str(expected[0] / "ingest"), str(PROJECT), sys.prefix, sys.base_prefix, *SYSTEM]
    opened = {path.removesuffix(" (deleted)") for path in found(OPENED, run)}
    assert {path for path in opened if not path.startswith(tuple(prefixes))} == set()
    assert str(expected[0] / "ingest/links" / GOOD) in opened, "else the watch itself is blind"


SYSTEM = ("/usr/", "/lib", "/etc/", "/proc/", "/sys/", "/dev/null", "/dev/urandom")


def test_no_program_is_run(run: Run) -> None:
    """But Python: the processor itself and its judges."""
    assert found(STARTED, run) == {sys.executable}


def test_nobody_is_spoken_to_but_the_database(run: Run) -> None:
    """Every connection goes to PostgreSQL's address; the C library asks for a local name service cache."""
    allowed = (f"htons({run.target.port})", f".s.PGSQL.{run.target.port}", "/nscd/socket")
    assert {peer for peer in found(CONNECTED, run) if not any(place in peer for place in allowed)} == set()


def test_every_source_is_scanned_to_its_end(run: Run) -> None:
    """By its own account; how long that took is printed."""
    seconds = {name: float(took) for name, took in SCANNED.findall(run.log)}
    print(f"{sum(seconds.values()):.1f} s in all, {run.cpu_seconds:.1f} s of processor time: {seconds}")
    assert run.files.keys() <= seconds.keys()


def test_memory_stays_small(run: Run) -> None:
    """The processor and its judges together."""
    print(f"at most {run.most_rss_bytes / 1e6:.0f} MB")
    assert run.most_rss_bytes < MAX_RSS_BYTES


def test_nothing_remains_when_it_ends(run: Run) -> None:
    """It stops when told to, and its judges with it."""
    assert run.left == []
    assert "stopped:" in run.log


def test_a_name_forges_no_line_of_the_log(run: Run) -> None:
    """Every line begins with a time; control characters and those that turn text around are escaped."""
    assert [line for line in run.log.splitlines() if not re.match(r"\d{4}-\d\d-\d\dT", line)] == []
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", run.log)
