"""One source to its rows, pass after pass, on a real database."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from services.core import db
from services.core.errors import DatabaseUnavailableError
from services.processor import claims, pipeline, rules
from services.processor.reasons import Reason
from services.processor.sources import reading, walk
from services.processor.store.storing import Storing
from services.processor.values import Rejection
from tests.integration.processor.conftest import code

NOTHING_WRITTEN = (
    "SELECT (SELECT sum(xmin::text::bigint) FROM files), (SELECT sum(xmin::text::bigint) FROM contents)"
)


def test_every_file_has_one_row(repo: Path, scan, files) -> None:
    """A content or a reason, never both, never neither."""
    tally = scan()
    assert files() == {"repo/src/apples.py": None, "repo/src/pears.py": None, "repo/short.py": "too_short"}
    assert (tally.stored, dict(tally.rejected), tally.complete) == (2, {"too_short": 1}, True)


def test_a_content_is_stored_as_judged(repo: Path, scan, rows) -> None:
    """Text, measures, score and its reasons; a new text begins its own cluster."""
    scan()
    ((text, language, size, lines, summed),) = rows(
        "SELECT text, language, bytes, lines,"
        " score = (SELECT sum(value::int) FROM jsonb_each_text(score_reasons))"
        " FROM contents WHERE text LIKE '%%apples%%'"
    )
    expected = code("apples")
    assert (text, language, size, lines) == (expected, "python", len(expected), expected.count("\n"))
    assert summed
    assert rows("SELECT count(DISTINCT cluster_id) FROM contents") == [(2,)]


def test_a_rescan_of_unchanged_files_writes_nothing(repo: Path, scan, rows) -> None:
    """Nothing but the time of the scan, and no file is read."""
    scan()
    before, (first,) = rows(NOTHING_WRITTEN), rows("SELECT last_scanned_at FROM sources")
    tally = scan()
    assert (tally.unchanged, tally.changed) == (3, False)
    assert rows(NOTHING_WRITTEN) == before
    assert rows("SELECT last_scanned_at FROM sources")[0] > first


def test_an_unchanged_file_is_not_read(repo: Path, scan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Size and mtime say enough."""
    scan()
    monkeypatch.setattr(pipeline.Pipeline, "take_one", lambda _self: pytest.fail("there was a chunk"))
    assert scan().unchanged == 3


def test_one_text_is_stored_once(repo: Path, ingest: Path, scan, rows) -> None:
    """Whether it comes twice in a batch, in another source, or again after a commit."""
    (repo / "copy.py").write_text(code("apples"))
    (ingest / "fork").mkdir()
    (ingest / "fork" / "apples.py").write_text(code("apples"))
    scan("repo")
    scan("fork")
    assert rows("SELECT count(*) FROM contents WHERE text = %s", code("apples")) == [(1,)]
    assert rows(
        "SELECT count(*) FROM files f JOIN contents c ON c.id = f.content_id WHERE text = %s", code("apples")
    ) == [(3,)]


def test_a_changed_file_keeps_its_cluster(repo: Path, scan, rows) -> None:
    """The new text descends from the old one, over any number of changes: a split never divides them."""
    scan()
    (origin,) = rows("SELECT cluster_id FROM contents WHERE text = %s", code("apples"))
    for noun in ("apricots", "cherries"):
        (repo / "src" / "apples.py").write_text(code(noun))
        scan()
        assert rows("SELECT cluster_id FROM contents WHERE text = %s", code(noun)) == [origin]
    assert rows("SELECT count(*) FROM contents") == [(4,)]
    assert rows("SELECT count(*) FROM files WHERE content_id IS NOT NULL") == [(2,)]


def test_a_file_that_was_broken_for_a_while_keeps_its_cluster(repo: Path, scan, rows) -> None:
    """A rejection between two versions does not let them straddle the split."""
    source = repo / "module.py"
    source.write_text(code("apples"))
    scan()
    origin = rows("SELECT cluster_id FROM contents WHERE text = %s", code("apples"))
    source.write_text(code("apples") + "\ndef broken(:\n")
    scan()
    source.write_text(code("plums"))
    scan()
    assert rows("SELECT cluster_id FROM contents WHERE text = %s", code("plums")) == origin


def test_a_change_to_a_known_text_takes_that_text(repo: Path, scan, rows) -> None:
    """Nothing is stored again, and the known text stays in its own cluster."""
    scan()
    origin = rows("SELECT cluster_id FROM contents WHERE text = %s", code("pears"))
    (repo / "src" / "apples.py").write_text(code("pears"))
    scan()
    assert rows("SELECT count(DISTINCT content_id) FROM files WHERE content_id IS NOT NULL") == [(1,)]
    assert rows("SELECT cluster_id FROM contents WHERE text = %s", code("pears")) == origin
    assert rows("SELECT count(*) FROM cluster_merges") == [(0,)]


def test_a_vanished_file_is_retired_and_may_return(repo: Path, scan, files, rows) -> None:
    """Its row stays, its text is not trained on meanwhile; back as it was, it holds that text again."""
    live = "SELECT live FROM contents WHERE text = %s"
    scan()
    (repo / "src" / "pears.py").rename(repo.parent.parent / "aside")
    assert scan().retired == 1
    assert "repo/src/pears.py" not in files()
    assert rows(live, code("pears")) == [(False,)]
    (repo.parent.parent / "aside").rename(repo / "src" / "pears.py")
    scan()
    assert files()["repo/src/pears.py"] is None
    assert rows(live, code("pears")) == [(True,)]
    assert rows("SELECT count(*) FROM files") == [(3,)]


def test_a_file_that_returns_changed_descends_from_what_it_was(repo: Path, scan, rows) -> None:
    """Retirement does not forget the cluster."""
    scan()
    (origin,) = rows("SELECT cluster_id FROM contents WHERE text = %s", code("pears"))
    (repo / "src" / "pears.py").unlink()
    scan()
    (repo / "src" / "pears.py").write_text(code("plums"))
    scan()
    assert rows("SELECT cluster_id FROM contents WHERE text = %s", code("plums")) == [origin]


def test_a_file_that_vanishes_while_read(repo: Path, scan, files, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one gets no row; one already known keeps its row until a walk does not meet it."""
    scan()
    (repo / "new.py").write_text(code("new"))
    (repo / "src" / "pears.py").write_text(code("changed"))
    monkeypatch.setattr(reading, "read_file", lambda *_args: Rejection(Reason.VANISHED, "gone"))
    scan()
    assert files() == {"repo/src/apples.py": None, "repo/src/pears.py": None, "repo/short.py": "too_short"}
    (repo / "src" / "pears.py").unlink()
    scan()
    assert "repo/src/pears.py" not in files()


def test_an_unreadable_file_is_tried_again_and_written_once(
    repo: Path, scan, files, rows, monkeypatch
) -> None:
    """Its mode may change where neither size nor mtime does."""
    with monkeypatch.context() as patch:
        patch.setattr(reading, "read_file", lambda *_args: Rejection(Reason.UNREADABLE, "not permitted"))
        scan()
        before = rows(NOTHING_WRITTEN)
        scan()
        assert rows(NOTHING_WRITTEN) == before
    scan()
    assert files()["repo/src/apples.py"] is None


def test_what_lies_below_an_unlisted_directory_is_not_retired(repo: Path, scan, files, monkeypatch) -> None:
    """Nothing is known of it; what is gone elsewhere is retired all the same."""
    scan()
    (repo / "short.py").unlink()
    listed = walk._listed
    inode = (repo / "src").stat().st_ino

    def names(directory: int) -> list[os.DirEntry[str]]:
        if os.fstat(directory).st_ino == inode:
            raise PermissionError(13, "Permission denied")
        return listed(directory)

    monkeypatch.setattr(walk, "_listed", names)
    assert scan().retired == 1
    assert files() == {"repo/src/": "unreadable", "repo/src/apples.py": None, "repo/src/pears.py": None}


def test_a_new_ignore_rule_takes_effect(repo: Path, scan, files) -> None:
    """On files that did not change themselves; and loses it again."""
    scan()
    (repo / ".gitignore").write_text("src/pears.py\n")
    scan()
    assert files()["repo/src/pears.py"] == "ignored"
    (repo / ".gitignore").unlink()
    scan()
    assert files()["repo/src/pears.py"] is None


def test_other_rules_judge_again(repo: Path, scan, files, rows) -> None:
    """Every file, also those refused, though none of them changed; what stays as it was is not written."""
    scan()
    before = rows("SELECT sum(xmin::text::bigint) FROM contents")
    tally = scan(rules=rules.Rules(None, licence_deny=("GPL-*",)))
    assert (tally.stored, tally.unchanged) == (2, 0)
    assert rows("SELECT sum(xmin::text::bigint) FROM contents") == before
    assert scan(rules=rules.Rules(None, licence_allow=("MIT",))).rejected == {
        "licence_denied": 2,
        "too_short": 1,
    }
    assert rows("SELECT count(*) FROM contents WHERE live") == [(0,)]


def test_an_older_score_is_replaced(repo: Path, scan, target, rows, database) -> None:
    """In place: stored texts get the new score when they are judged again."""
    scan()
    expected = rows("SELECT score, score_reasons FROM contents ORDER BY sha256")
    with closing(db.connect(target)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("UPDATE contents SET score = 1, score_reasons = '{}', scorer_version = 0")
        cursor.execute("UPDATE files SET rules = 1")
    scan()
    assert rows("SELECT score, score_reasons FROM contents ORDER BY sha256") == expected
    assert rows("SELECT sum(contents) FROM score_histogram") == [(2,)]


def test_hostile_names_are_stored(repo: Path, scan, rows) -> None:
    r"""Bytes that are not UTF-8, tabs, line breaks, \N, quotes, and a pair spelt alike once escaped."""
    for name in (
        b"\xe9.py",
        b"\\xe9.py",
        b"a\tb\nc\r.py",
        b"\\N",
        b"'\";--.py",
        b"\xed\xa0\x80.py",
        "\u202e.py".encode(),
    ):
        (repo / os.fsdecode(name)).write_text(code("names"))
    scan()
    scan()
    assert rows("SELECT count(*) FROM files") == [(3 + 6,)]
    assert rows("SELECT count(*) FROM files WHERE path = %s", "a\tb\nc\r.py") == [(1,)]


def test_long_paths_are_refused(repo: Path, scan, rows) -> None:
    """The directory whose path no index entry holds is one row, told apart from others by a digest."""
    deep = repo
    for _ in range(12):
        deep /= "é" * 100
        deep.mkdir()
    (deep / "a.py").write_text(code("deep"))
    scan()
    assert rows(
        "SELECT count(*), max(octet_length(path)) < 1600 FROM files WHERE reason = 'path_too_long'"
    ) == [(1, True)]
    assert scan().unchanged == 4


def test_chunks_are_bounded(repo: Path, scan, rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source larger than a chunk is stored in several transactions, to the last file."""
    monkeypatch.setattr(claims, "CHUNK_FILES", 7)
    for number in range(40):
        (repo / f"file{number}.py").write_text(code(f"things_{number}"))
    tally = scan()
    assert tally.stored == 42
    assert rows("SELECT count(DISTINCT xmin::text) FROM files")[0][0] >= 6
    assert rows("SELECT count(*) FROM claims") == [(0,)]


def test_a_stop_ends_at_the_batch_and_retires_nothing(repo: Path, scan, files) -> None:
    """What was stored stays, the rest waits for the next scan."""
    scan()
    tally = scan(stop=lambda: True)
    assert not tally.complete
    assert len(files()) == 3


def test_a_source_that_cannot_be_listed_is_not_retired(
    repo: Path, scan, files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error reaches the caller and the rows stay."""
    scan()

    def refused(_directory: int) -> list[os.DirEntry[str]]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(walk, "_listed", refused)
    with pytest.raises(PermissionError):
        scan()
    assert len(files()) == 3


def test_a_lost_database_loses_nothing(
    repo: Path, database, scan, rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk whose commit failed is left for another try, and stored once."""
    failures = iter([DatabaseUnavailableError("away")])
    finished = claims.finish

    def flaky(*arguments):
        for failure in failures:
            raise failure
        return finished(*arguments)

    monkeypatch.setattr(claims, "finish", flaky)
    with pytest.raises(DatabaseUnavailableError):
        scan()
    assert rows("SELECT count(*) FROM contents") == [(0,)]
    assert scan().stored == 2
    assert rows("SELECT count(*) FROM contents") == [(2,)]


def test_a_file_that_cannot_be_stored_stops_no_other(
    repo: Path, scan, files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its chunk is divided until it is alone; it is refused, the others are stored."""
    row = Storing._content_row

    def broken(storing, draft):
        if "pears" in draft.text:
            raise ValueError("a fault of ours")
        return row(storing, draft)

    monkeypatch.setattr(Storing, "_content_row", broken)
    scan()
    assert files()["repo/src/pears.py"] == "judge_crashed"
    assert files()["repo/src/apples.py"] is None
