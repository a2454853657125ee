"""The counts that the pages of ingest show are kept as files come, change and go."""

import shutil
from pathlib import Path

import pytest

from services.processor import scan as scanning
from tests.integration.processor.conftest import code

KEPT = "SELECT source_id, reason, language, files FROM file_counts WHERE files <> 0 ORDER BY 1, 2, 3"
COUNTED = (
    "SELECT source_id, coalesce(reason, ''), coalesce(language, ''), count(*) FROM files"
    " WHERE retired_at IS NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
)
READ = "SELECT sum(kept)::int, sum(refused)::int FROM files_read"
LOOKS = "SELECT kept, refused, unchanged, retired, renamed FROM looks ORDER BY id"


def test_counts_are_right_whatever_happens(repo: Path, ingest: Path, scan, rows) -> None:
    """Files come, are copied, change, are refused, go and come again: each time as if counted anew."""
    steps = [
        lambda: (repo / "src" / "copy.py").write_text(code("apples") + "\n"),
        lambda: (repo / "src" / "pears.py").write_text("x = 1\n"),
        (repo / "src" / "apples.py").unlink,
        lambda: (repo / "src" / "apples.py").write_text(code("plums")),
        lambda: shutil.rmtree(repo / "src"),
    ]
    scan()
    assert rows(KEPT) == rows(COUNTED)
    for step in steps:
        step()
        scan()
        scan()  # near duplicates of what went are judged again
        assert rows(KEPT) == rows(COUNTED)


def test_what_was_read_is_counted_once(repo: Path, scan, rows) -> None:
    """A second look at unchanged files reads nothing; a changed one is read once more."""
    scan()
    scan()
    assert rows(READ) == [(2, 1)]
    (repo / "short.py").write_text("y = 22\n")
    scan()
    assert rows(READ) == [(2, 2)]


def test_a_look_that_found_something_is_remembered(repo: Path, scan, rows) -> None:
    """Kept, refused, unchanged, gone; one that found nothing new is not."""
    scan()
    scan()
    (repo / "src" / "pears.py").unlink()
    scan()
    assert rows(LOOKS) == [(2, 1, 0, 0, 0), (0, 0, 2, 1, 0)]


def test_old_looks_are_dropped(repo: Path, scan, rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many are kept of a source, the newest."""
    monkeypatch.setattr(scanning, "LOOKS", 2)
    for length in range(3, 7):
        (repo / "short.py").write_text("x" * length)
        scan()
    assert [row[:2] for row in rows(LOOKS)] == [(0, 1), (0, 1)]


def test_a_retired_file_may_be_judged_again_as_it_was(repo: Path, scan, rows) -> None:
    """One that goes and comes back with the same bytes counts again."""
    scan()
    moved = repo.with_name("elsewhere")
    (repo / "src").rename(moved)
    scan()
    moved.rename(repo / "src")
    scan()
    assert rows(KEPT) == rows(COUNTED)
