"""Reading what a walk found, long after it and whatever happened in between."""

import os
import time
from pathlib import Path

import pytest

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.sources.options import Options
from services.processor.sources.reading import FileReader, read_file
from services.processor.sources.walk import DirectoryWalk
from services.processor.values import Found, Read, Rejection

OPEN = Path("/proc/self/fd")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "secret.py").write_text("outside = True\n")
    repo = tmp_path / "repo"
    (repo / "d").mkdir(parents=True)
    (repo / "d" / "secret.py").write_text("inside = True\n")
    return repo


def read(repo: Path, path: str) -> bytes | Reason:
    with FileReader(repo) as files:
        outcome = files.read(Found(path, 0, 0))
    return outcome.data if isinstance(outcome, Read) else outcome.reason


def test_a_walk_and_a_reader_agree(repo: Path) -> None:
    """Bytes, size and time, whatever the names."""
    (repo / "d\udcff").mkdir()
    (repo / "d\udcff" / "\udce9.py").write_bytes(b"raw")
    with FileReader(repo) as files:
        outcomes = {found.path: (found, files.read(found)) for found in DirectoryWalk(repo, Options())}
    assert set(outcomes) == {"d/secret.py", r"d\xff/\xe9.py"}
    for found, outcome in outcomes.values():
        assert isinstance(outcome, Read)
        assert (outcome.size_bytes, outcome.mtime_ns) == (found.size_bytes, found.mtime_ns)
    assert outcomes[r"d\xff/\xe9.py"][1].data == b"raw"


def test_what_changed_since_the_walk_shows(repo: Path) -> None:
    """By the size and time that were read."""
    (found,) = DirectoryWalk(repo, Options())
    (repo / "d" / "secret.py").write_text("longer = 'than before'\n")
    with FileReader(repo) as files:
        outcome = files.read(found)
    assert isinstance(outcome, Read)
    assert outcome.size_bytes != found.size_bytes


def test_a_directory_swapped_for_a_link_leads_nowhere(repo: Path) -> None:
    """Between the walk and the reading."""
    (repo / "d").rename(repo / "moved")
    (repo / "d").symlink_to("../..")
    assert read(repo, "d/secret.py") is Reason.UNREADABLE


def test_a_file_swapped_for_a_link_is_not_read(repo: Path) -> None:
    """Nor one for a link to a file inside."""
    (repo / "a.py").symlink_to("../secret.py")
    assert read(repo, "a.py") is Reason.UNREADABLE


def test_a_path_that_leads_out_is_not_opened(repo: Path) -> None:
    """Even if somebody wrote it into the database."""
    assert read(repo, "../secret.py") is Reason.UNREADABLE
    assert read(repo, "d/../../secret.py") is Reason.UNREADABLE
    (repo.parent / "s").write_text("absolute")
    assert read(repo, f"{repo.parent}/s") != b"absolute"


def test_a_file_swapped_for_a_fifo_does_not_block(repo: Path) -> None:
    """Nor a device or a directory."""
    os.mkfifo(repo / "pipe.py")
    assert read(repo, "pipe.py") is Reason.SPECIAL_FILE
    assert read(repo, "d") is Reason.SPECIAL_FILE


def test_what_is_gone_has_vanished(repo: Path) -> None:
    """The file, or a directory on the way to it."""
    assert read(repo, "none.py") is Reason.VANISHED
    assert read(repo, "none/a.py") is Reason.VANISHED


def test_a_sparse_file_of_ten_gigabytes_is_too_large(repo: Path) -> None:
    """And not read."""
    with (repo / "big.py").open("wb") as file:
        file.truncate(10 * 10**9)
    assert read(repo, "big.py") is Reason.TOO_LARGE


def test_the_largest_file_is_read_whole(repo: Path) -> None:
    """One byte more is too large."""
    (repo / "a.py").write_bytes(b"x" * thresholds.MAX_FILE_BYTES)
    (repo / "b.py").write_bytes(b"x" * (thresholds.MAX_FILE_BYTES + 1))
    assert len(read(repo, "a.py")) == thresholds.MAX_FILE_BYTES
    assert read(repo, "b.py") is Reason.TOO_LARGE


def test_a_file_that_reports_no_size_is_still_capped() -> None:
    """Those of /proc say 0 and hold more."""
    directory = os.open("/proc/self", os.O_RDONLY)
    try:
        outcome = read_file(directory, "maps", max_bytes=100)
    finally:
        os.close(directory)
    assert isinstance(outcome, Rejection)
    assert outcome.reason is Reason.TOO_LARGE


def test_a_read_outlives_the_tick_of_the_clock(repo: Path) -> None:
    """A write right after it gets another mtime, so that it is noticed."""
    (repo / "a.py").write_text("one")
    with FileReader(repo) as files:
        outcome = files.read(Found("a.py", 3, 0))
    assert isinstance(outcome, Read)
    assert time.time_ns() - outcome.mtime_ns >= 20_000_000


def test_a_reader_keeps_few_descriptors(repo: Path) -> None:
    """However many directories it visits, and none when it is closed."""
    before = len(list(OPEN.iterdir()))
    with FileReader(repo) as files:
        for number in range(40):
            (repo / f"d{number}" / "e").mkdir(parents=True)
            (repo / f"d{number}" / "e" / "a.py").write_text("x")
            files.read(Found(f"d{number}/e/a.py", 0, 0))
            files.read(Found(f"d{number}/none/a.py", 0, 0))
        assert len(list(OPEN.iterdir())) <= before + 2
    assert len(list(OPEN.iterdir())) == before
