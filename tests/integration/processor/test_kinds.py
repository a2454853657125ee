"""Kinds of sources in the database: archives, git working trees, bare repositories, options, licences."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from services.core.errors import ConfigurationError
from services.processor.rules import Rules
from tests.integration.processor.conftest import code

MIT = """MIT License

Copyright (c) 2026 The Authors

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES
OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def git(*arguments: str, at: Path) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=at, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def history(repo: Path) -> Path:
    """The source `repo` with two commits: the second touches one file."""
    git("init", at=repo)
    git("add", ".", at=repo)
    git("commit", "-qm", "one", "--date=2020-01-01T00:00:00Z", at=repo)
    (repo / "src" / "pears.py").write_text(code("plums"))
    git("commit", "-qam", "two", at=repo)
    return repo


def archive(ingest: Path, files: dict[str, str], name: str = "code.tar.gz") -> Path:
    folder = ingest.parent / "packed"
    with tarfile.open(ingest / name, "w:gz") as tar:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
            tar.add(folder / path, path)
    return ingest / name


def test_an_archive_is_a_source(ingest: Path, scan, files, rows) -> None:
    """Its members have rows of their own; unchanged it is not opened again, not even listed."""
    archive(ingest, {"top/a.py": code("apples"), "top/short.py": "x = 1\n"})
    scan("code.tar.gz")
    assert files() == {"code.tar.gz/top/a.py": None, "code.tar.gz/top/short.py": "too_short"}
    assert rows("SELECT kind FROM sources") == [("archive",)]
    tally = scan("code.tar.gz")
    assert (tally.unchanged, tally.changed, tally.complete) == (0, False, True)


def test_a_newer_archive_supersedes_the_older(ingest: Path, scan, files) -> None:
    """What it lacks is retired, what it has anew is stored."""
    archive(ingest, {"a.py": code("apples"), "b.py": code("pears")})
    scan("code.tar.gz")
    archive(ingest, {"a.py": code("apples"), "c.py": code("plums")})
    tally = scan("code.tar.gz")
    assert tally.retired == 1
    assert files() == {"code.tar.gz/a.py": None, "code.tar.gz/c.py": None}


def test_a_broken_archive_keeps_what_came_before(ingest: Path, scan, files) -> None:
    """And has one row of its own that says so."""
    path = archive(ingest, {f"f{n}.py": code(f"n{n}") for n in range(40)})
    path.write_bytes(path.read_bytes()[:-3000])
    scan("code.tar.gz")
    found = files()
    assert found.pop("code.tar.gz/.") == "archive_broken"
    assert found
    assert set(found.values()) == {None}


def test_a_working_tree_has_commits(history: Path, scan, rows) -> None:
    """The source's, and of each file the one that touched it last, with its time."""
    scan()
    assert rows("SELECT kind, commit_id, history_id FROM sources") == [
        ("git", git("rev-parse", "HEAD", at=history), git("rev-parse", "HEAD", at=history))
    ]
    expected = {
        path: tuple(git("log", "-1", "--format=%H %ct", "--", path, at=history).split())
        for path in ("src/apples.py", "src/pears.py", "short.py")
    }
    stored = rows("SELECT path, commit_id, extract(epoch FROM changed_at)::bigint::text FROM files")
    assert {path: (commit, when) for path, commit, when in stored} == expected


def test_a_bare_repository_is_read_without_a_working_tree(
    history: Path, ingest: Path, scan, files, rows
) -> None:
    """Its HEAD's files, with commits; a new commit is an increment."""
    git("clone", "-q", "--bare", str(history), str(ingest / "bare"), at=ingest)
    scan("bare")
    assert files() == {"bare/src/apples.py": None, "bare/src/pears.py": None, "bare/short.py": "too_short"}
    assert rows("SELECT kind FROM sources") == [("bare",)]
    assert rows("SELECT count(*) FROM files WHERE commit_id IS NULL") == [(0,)]
    assert scan("bare").changed is False
    (history / "src" / "new.py").write_text(code("quinces"))
    git("add", ".", at=history)
    git("commit", "-qm", "three", at=history)
    git("push", "-q", str(ingest / "bare"), "HEAD", at=history)
    tally = scan("bare")
    assert (tally.stored, tally.unchanged) == (1, 3)


def test_a_repository_dropped_again_adds_nothing(history: Path, ingest: Path, scan, rows) -> None:
    """As a clone of itself under another name: every text is known."""
    scan()
    before = rows("SELECT count(*) FROM contents")
    git("clone", "-q", str(history), str(ingest / "again"), at=ingest)
    scan("again")
    assert rows("SELECT count(*) FROM contents") == before


def test_a_rename_keeps_the_past(repo: Path, scan, rows) -> None:
    """The row under the new name says where it came from and since when it is known."""
    scan()
    (since,) = rows("SELECT first_seen_at FROM files WHERE path = 'src/pears.py'")
    (repo / "src" / "pears.py").rename(repo / "moved.py")
    assert scan().renamed == 1
    assert rows("SELECT renamed_from, first_seen_at FROM files WHERE path = 'moved.py'") == [
        ("src/pears.py", *since)
    ]
    assert rows("SELECT count(*) FROM contents WHERE live") == [(2,)]


def test_options_choose_what_is_taken(repo: Path, ingest: Path, scan, files, rows) -> None:
    """include, exclude and licence of `<name>.ratchet.yaml`."""
    (ingest / "repo.ratchet.yaml").write_text("exclude: [src/pears.py]\nlicence: Apache-2.0\n")
    scan()
    assert files() == {
        "repo/src/apples.py": None,
        "repo/src/pears.py": "ignored",
        "repo/short.py": "too_short",
    }
    assert rows("SELECT licence FROM sources") == [("Apache-2.0",)]


def test_malformed_options_leave_the_source_as_it_is(repo: Path, ingest: Path, scan, files) -> None:
    """The error names file and key, and nothing is retired or stored half."""
    scan()
    (ingest / "repo.ratchet.yaml").write_text("exlude: [src]\n")
    with pytest.raises(ConfigurationError, match=r"repo\.ratchet\.yaml.*exlude"):
        scan()
    assert len(files()) == 3


def test_the_licence_of_a_source_is_read_and_obeyed(repo: Path, scan, files, rows) -> None:
    """Of its licence text; a file's own header goes before it."""
    (repo / "LICENSE").write_text(MIT)
    (repo / "gpl.py").write_text("# SPDX-License-Identifier: GPL-3.0-only\n" + code("gnus"))
    scan()
    assert rows("SELECT licence FROM sources") == [("MIT",)]
    assert rows("SELECT licence FROM contents WHERE licence IS NOT NULL") == [("GPL-3.0-only",)]
    scan(rules=Rules(None, licence_allow=("MIT",)))
    found = files()
    assert (found["repo/gpl.py"], found["repo/src/apples.py"]) == ("licence_denied", None)
    assert rows("SELECT count(*) FROM contents WHERE live") == [(2,)]


def test_the_licence_of_an_archive_is_read_first_where_it_matters(ingest: Path, scan, files) -> None:
    """Wherever in it the text lies."""
    archive(ingest, {"top/a.py": code("apples"), "top/LICENSE": MIT})
    scan("code.tar.gz", rules=Rules(None, licence_deny=("MIT",)))
    assert files()["code.tar.gz/top/a.py"] == "licence_denied"


def test_secrets_never_reach_the_database(repo: Path, scan, rows) -> None:
    """Nor does what was redacted leave a trace but its kind and line."""
    key = "AKIA" + "Q3EGRIUYTPOIQWEZ"
    (repo / "keys.py").write_text(code("keys") + f'\nACCESS_KEY = "{key}"\n')
    scan()
    ((text, redactions),) = rows("SELECT text, redactions FROM contents WHERE text LIKE '%%ACCESS_KEY%%'")
    assert key not in text
    assert redactions == [["aws_access_key", text[: text.index("ACCESS_KEY")].count("\n") + 1]]
    assert rows("SELECT count(*) FROM contents WHERE contents::text LIKE %s", f"%{key}%") == [(0,)]


def test_a_stored_text_has_units_and_a_live_mark(repo: Path, scan, rows) -> None:
    """Spans within its bytes, in order."""
    scan()
    assert rows("SELECT DISTINCT kind, name FROM units ORDER BY name") == [
        ("function", "count_apples"), ("function", "count_pears"),
    ]  # fmt: skip
    assert rows(
        "SELECT bool_and(convert_from(substring(convert_to(c.text, 'UTF8') FROM u.start_byte + 1"
        " FOR u.end_byte - u.start_byte), 'UTF8') LIKE 'def count%%'), bool_and(c.live)"
        " FROM units u JOIN contents c ON c.id = u.content_id"
    ) == [(True, True)]
