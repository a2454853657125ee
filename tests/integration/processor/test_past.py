"""Times of lines in the database: of working trees and bare repositories, from one scan to the next."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from services.processor import past
from tests.integration.processor.conftest import code

FIRST, SECOND, THIRD = 1_600_000_000, 1_600_100_000, 1_600_200_000  # seconds since 1970


def git(*arguments: str, at: Path, seconds: int = 0) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    when = {"GIT_AUTHOR_DATE": f"{seconds} +0000", "GIT_COMMITTER_DATE": f"{seconds} +0000"}
    subprocess.run(
        ["git", *identity, *arguments], cwd=at, check=True, capture_output=True, env=os.environ | when
    )


def commit(repo: Path, seconds: int) -> None:
    git("add", "-A", ".", at=repo)
    git("commit", "-qm", "a change", at=repo, seconds=seconds)


@pytest.fixture
def history(repo: Path) -> Path:
    """The source `repo`, committed once."""
    git("init", "-q", at=repo)
    commit(repo, FIRST)
    return repo


@pytest.fixture
def line_times(rows) -> Callable[..., dict[str, object]]:
    """Path → times of the lines of what it holds now; None where they are not known."""
    query = """
        SELECT f.path, CASE WHEN f.lines_of = f.content_id THEN f.line_times END
        FROM files f JOIN sources s ON s.id = f.source_id
        WHERE f.retired_at IS NULL AND f.content_id IS NOT NULL AND s.name = %s"""
    return lambda source="repo": dict(rows(query, source))


APPLES = "src/apples.py"
LINES = code("apples").count("\n")


def test_lines_have_the_times_of_their_commits(history: Path, scan, line_times, rows) -> None:
    """And keep them when the text changes: by what was known and by what is new."""
    scan()
    assert line_times() == {APPLES: [[1, LINES, FIRST]], "src/pears.py": [[1, LINES, FIRST]]}
    (history / APPLES).write_text(f"# Apples\n{code('apples')}")
    commit(history, SECOND)
    scan()
    assert line_times()[APPLES] == [[1, 1, SECOND], [2, LINES + 1, FIRST]]
    head = (history / ".git/refs/heads/main").read_text().strip()
    assert rows("SELECT lines_id, lines_since FROM sources") == [(head, None)]


def test_a_bare_repository_tells_the_same(history: Path, ingest: Path, scan, line_times) -> None:
    """Though it has no files but its objects."""
    (history / APPLES).write_text(f"{code('apples')}\n# More apples\n")
    commit(history, SECOND)
    git("clone", "-q", "--bare", str(history), str(ingest / "bare"), at=ingest)
    scan("bare")
    assert line_times("bare")[APPLES] == [[1, LINES, FIRST], [LINES + 1, LINES + 2, SECOND]]


def test_what_is_not_committed_has_no_time(history: Path, scan, line_times) -> None:
    """Edited before the first scan, and between two; committed later it has that time."""
    (history / APPLES).write_text(f"# Apples\n{code('apples')}")
    scan()
    assert line_times()[APPLES] == [[2, LINES + 1, FIRST]]
    (history / APPLES).write_text(f"# Apples\n{code('apples')}\n# More apples\n")
    scan()
    assert line_times()[APPLES] == [[2, LINES + 1, FIRST]]
    commit(history, THIRD)
    scan()
    assert line_times()[APPLES] == [[1, 1, THIRD], [2, LINES + 1, FIRST], [LINES + 2, LINES + 3, THIRD]]


def test_a_redacted_line_keeps_its_time(history: Path, scan, line_times, rows) -> None:
    """It is not what the repository has, but stands in its place; later changes leave it as it is."""
    secret = 'TOKEN = "ghp_' + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1z2A" + '"\n'
    (history / APPLES).write_text(secret + code("apples"))
    commit(history, SECOND)
    scan()
    assert rows("SELECT count(*) FROM contents WHERE redactions <> '[]'") == [(1,)]
    expected = [[1, 1, SECOND], [2, LINES + 1, FIRST]]
    assert line_times()[APPLES] == expected
    (history / APPLES).write_text(secret + code("apples") + "# More\n")
    commit(history, THIRD)
    scan()
    assert line_times()[APPLES] == [*expected, [LINES + 2, LINES + 2, THIRD]]


def test_a_renamed_file_keeps_its_times(history: Path, scan, line_times) -> None:
    """Committed, or moved in the working tree alone."""
    scan()
    (history / APPLES).rename(history / "src/fruit.py")
    scan()
    assert line_times()["src/fruit.py"] == [[1, LINES, FIRST]]
    (history / "src/pears.py").rename(history / "src/other.py")
    commit(history, SECOND)
    scan()
    assert line_times() == {"src/fruit.py": [[1, LINES, FIRST]], "src/other.py": [[1, LINES, FIRST]]}


def test_a_source_scanned_before_is_told_though_nothing_changed(history: Path, scan, line_times) -> None:
    """As after the migration: files and HEAD are as they were, the times are not there."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(past.Past, "_record_lines", lambda *_: None)
        (history / APPLES).write_text(f"# Apples\n{code('apples')}")
        commit(history, SECOND)
        scan()
    assert line_times()[APPLES] is None
    assert scan().unchanged == 3
    assert line_times()[APPLES] == [[1, 1, SECOND], [2, LINES + 1, FIRST]]


def test_a_limit_is_recorded_and_loses_nothing(
    history: Path, scan, line_times, rows, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines whose commit was not reached have no time, unless it was known before."""
    (history / APPLES).write_text(f"# Apples\n{code('apples')}")
    commit(history, SECOND)
    limited = past.Blame
    monkeypatch.setattr(past, "Blame", lambda *args, **kwargs: limited(*args, **kwargs, max_commits=1))
    scan()
    assert line_times() == {APPLES: [[1, 1, SECOND]], "src/pears.py": []}
    assert rows("SELECT extract(epoch FROM lines_since)::bigint FROM sources") == [(SECOND,)]
    assert "read back to 2020-09-14 (1 commits)" in caplog.text
    (history / APPLES).write_text(f"# Apples\n{code('apples')}# More\n")
    commit(history, THIRD)
    scan()
    assert line_times()[APPLES] == [[1, 1, SECOND], [LINES + 2, LINES + 2, THIRD]]


def test_nothing_is_told_where_there_is_no_history(repo: Path, scan, line_times) -> None:
    """A plain directory."""
    scan()
    assert line_times() == {APPLES: None, "src/pears.py": None}
