"""Logs of a local run are kept small while they are written, and nothing is lost between two looks."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli.stack.rotation import KEPT, MAX_BYTES, rotate
from services.cli.stack.supervisor import Part, Supervisor


def pieces(log: Path) -> list[Path]:
    """A log's copies and itself, the oldest first."""
    copies = [log.with_name(f"{log.name}.{number}") for number in range(KEPT, 0, -1)]
    return [path for path in [*copies, log] if path.exists()]


@contextmanager
def writer(log: Path) -> Iterator[IO[bytes]]:
    """As a part has its log: opened once, for appending."""
    with log.open("ab", buffering=0) as file:
        yield file


def test_the_file_stays_and_what_it_held_is_in_the_newest_copy(tmp_path: Path) -> None:
    """Whoever writes to it goes on at its beginning."""
    log = tmp_path / "trainer.log"
    with writer(log) as file:
        inode = log.stat().st_ino
        file.write(b"one\n" * 10)
        assert rotate(log, 20)
        file.write(b"two\n")
    assert (log.read_bytes(), log.stat().st_ino) == (b"two\n", inode)
    assert (tmp_path / "trainer.log.1").read_bytes() == b"one\n" * 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trainer.log", "trainer.log.1"]


def test_a_log_that_is_small_or_absent_is_left(tmp_path: Path) -> None:
    log = tmp_path / "trainer.log"
    assert not rotate(log)
    log.write_bytes(b"x" * 20)
    assert not rotate(log, 20)
    assert log.read_bytes() == b"x" * 20


@given(st.lists(st.integers(1, 40), max_size=30))
def test_nothing_is_lost_but_the_oldest_and_there_is_an_end_to_it(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    """Of whatever is written, the copies and the log hold the end; together never more than the cap."""
    log = tmp_path_factory.mktemp("logs") / "trainer.log"
    written = b""
    with writer(log) as file:
        for number, size in enumerate(sizes):
            line = bytes([number]) * size
            written += line
            file.write(line)
            rotate(log, 50)
    held = b"".join(path.read_bytes() for path in pieces(log))
    assert written.endswith(held)
    assert len(held) == len(written) or len(pieces(log)) == KEPT + 1
    assert all(path.stat().st_size <= 50 + 40 for path in pieces(log))


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=30))
def test_a_reader_that_follows_the_rule_misses_nothing(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool]]
) -> None:
    """The rule of services/core/log.py: another `.1` than before is read on from, then the log anew."""
    log = tmp_path_factory.mktemp("logs") / "trainer.log"
    copy = log.with_name("trainer.log.1")
    written, read, position, known = b"", b"", 0, None
    with writer(log) as file:
        for number, (size, looks) in enumerate(steps):
            line = bytes([number]) * size
            written += line
            file.write(line)
            if rotate(log, 50) or looks or number == len(steps) - 1:
                newest = copy.stat().st_ino if copy.exists() else None
                if newest != known:
                    read += copy.read_bytes()[position:]
                    position, known = 0, newest
                read += log.read_bytes()[position:]
                position = log.stat().st_size
    assert read == written


def test_what_cannot_be_rotated_is_left_as_it_is(tmp_path: Path) -> None:
    """A log that grows is better than a part that dies of its log."""
    log = tmp_path / "trainer.log"
    log.write_bytes(b"x" * 100)
    (tmp_path / f"trainer.log.{KEPT}").mkdir()
    assert not rotate(log, 20)
    assert log.read_bytes() == b"x" * 100


def test_the_supervisor_rotates_the_log_of_a_part_that_runs(tmp_path: Path) -> None:
    """At its next look."""
    log = tmp_path / "logs" / "part.log"
    log.parent.mkdir()
    log.write_bytes(b"x" * (MAX_BYTES + 1))
    supervisor = Supervisor(tmp_path, print)
    supervisor.start(
        [Part("part", (sys.executable, "-c", "import time; time.sleep(60)"), {}, log, patience=5)]
    )
    try:
        supervisor.watch()
    finally:
        supervisor.stop()
    assert (log.with_name("part.log.1").stat().st_size, log.stat().st_size) == (MAX_BYTES + 1, 0)


def test_a_program_that_shares_the_file_is_not_cut_off(tmp_path: Path) -> None:
    """The processes of a round write through the file that the daemon was given."""
    log = tmp_path / "trainer.log"
    with writer(log) as file:
        file.write(b"x" * 100)
        rotate(log, 20)
        subprocess.run([sys.executable, "-c", "print('a child')"], stdout=file, check=True)
    assert log.read_bytes() == b"a child\n"
