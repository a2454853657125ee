"""One source to its rows, pass after pass, on a real database."""

import os
import time
from pathlib import Path

import pytest

from services.core.errors import DatabaseUnavailableError
from services.processor import ingest as ingest_module
from services.processor import pipeline, store
from services.processor.reasons import Reason
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
    ((text, language, size, lines, own, summed),) = rows(
        "SELECT text, language, bytes, lines, cluster_id = id,"
        " score = (SELECT sum(value::int) FROM jsonb_each_text(score_reasons))"
        " FROM contents WHERE text LIKE '%%apples%%'"
    )
    assert (text, language, size, lines) == (code("apples"), "python", len(code("apples")), 8)
    assert summed
    assert own


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
    monkeypatch.setattr(pipeline, "_outcome", lambda found: pytest.fail(f"{found.path} was looked at"))
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
    (origin,) = rows("SELECT id FROM contents WHERE text = %s", code("apples"))
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
    (repo / "src" / "apples.py").write_text(code("pears"))
    scan()
    assert rows("SELECT count(DISTINCT content_id) FROM files WHERE content_id IS NOT NULL") == [(1,)]
    assert rows("SELECT cluster_id = id FROM contents WHERE text = %s", code("pears")) == [(True,)]


def test_a_vanished_file_is_retired_and_may_return(repo: Path, scan, files, rows, monkeypatch) -> None:
    """Its row stays; back as it was, it is taken back without being read."""
    scan()
    (repo / "src" / "pears.py").rename(repo.parent / "aside")
    assert scan().retired == 1
    assert "repo/src/pears.py" not in files()
    (repo.parent / "aside").rename(repo / "src" / "pears.py")
    monkeypatch.setattr(pipeline, "_outcome", lambda found: pytest.fail(f"{found.path} was looked at"))
    scan()
    assert files()["repo/src/pears.py"] is None
    assert rows("SELECT count(*) FROM files") == [(3,)]


def test_a_file_that_returns_changed_descends_from_what_it_was(repo: Path, scan, rows) -> None:
    """Retirement does not forget the cluster."""
    scan()
    (origin,) = rows("SELECT id FROM contents WHERE text = %s", code("pears"))
    (repo / "src" / "pears.py").unlink()
    scan()
    (repo / "src" / "pears.py").write_text(code("plums"))
    scan()
    assert rows("SELECT cluster_id FROM contents WHERE text = %s", code("plums")) == [origin]


def test_a_file_that_vanishes_while_read(repo: Path, scan, files, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one is refused as vanished; one already known is retired, and what it held stays known."""
    scan()
    (repo / "new.py").write_text(code("new"))
    (repo / "src" / "pears.py").write_text(code("changed"))
    monkeypatch.setattr(ingest_module, "read", lambda *_args: Rejection(Reason.VANISHED, "gone"))
    assert scan().retired == 1
    assert files()["repo/new.py"] == "vanished"
    assert "repo/src/pears.py" not in files()


def test_an_unreadable_file_is_tried_again_and_written_once(
    repo: Path, scan, files, rows, monkeypatch
) -> None:
    """Its mode may change where neither size nor mtime does."""
    with monkeypatch.context() as patch:
        patch.setattr(ingest_module, "read", lambda *_args: Rejection(Reason.UNREADABLE, "Permission denied"))
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
    listed = ingest_module._names
    inode = (repo / "src").stat().st_ino

    def names(directory: int) -> list[str]:
        if os.fstat(directory).st_ino == inode:
            raise PermissionError(13, "Permission denied")
        return listed(directory)

    monkeypatch.setattr(ingest_module, "_names", names)
    assert scan().retired == 1
    assert files() == {"repo/src": "unreadable", "repo/src/apples.py": None, "repo/src/pears.py": None}


def test_a_new_ignore_rule_takes_effect(repo: Path, scan, files) -> None:
    """On files that did not change themselves; and loses it again."""
    scan()
    (repo / ".gitignore").write_text("src/pears.py\n")
    scan()
    assert files()["repo/src/pears.py"] == "ignored"
    (repo / ".gitignore").unlink()
    scan()
    assert files()["repo/src/pears.py"] is None


def test_a_newer_scorer_scores_again(repo: Path, scan, rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored texts get the new score at the next scan, in place."""
    scan()
    monkeypatch.setattr("services.processor.score.SCORER_VERSION", 99)
    monkeypatch.setattr(pipeline, "SCORER_VERSION", 99)
    assert scan().stored == 2
    assert rows("SELECT DISTINCT scorer_version FROM contents") == [(99,)]
    assert rows("SELECT count(*) FROM contents") == [(2,)]


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


def test_long_paths_are_stored(repo: Path, scan, rows) -> None:
    """As far as an index entry holds them, and told apart by a digest."""
    deep = repo
    for _ in range(12):
        deep /= "é" * 100
        deep.mkdir()
    (deep / "a.py").write_text(code("deep"))
    (deep / "b.py").write_text(code("deep"))
    scan()
    assert rows(
        "SELECT count(*), max(octet_length(path)) < 1600 FROM files WHERE reason = 'path_too_long'"
    ) == [(2, True)]


def test_batches_are_bounded(repo: Path, scan, rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source larger than a batch is stored in several transactions, to the last file."""
    monkeypatch.setattr(store, "BATCH_FILES", 7)
    for number in range(40):
        (repo / f"file{number}.py").write_text(code(f"things_{number}"))
    assert scan().stored == 42
    assert rows("SELECT count(DISTINCT xmin::text) FROM contents")[0][0] >= 6


def test_a_stop_ends_at_the_batch_and_retires_nothing(repo: Path, scan, files) -> None:
    """What was stored stays, the rest waits for the next scan."""
    scan()
    tally = scan(stop=lambda: True)
    assert not tally.complete
    assert len(files()) == 3


def test_a_source_that_cannot_be_listed_is_not_retired(repo: Path, scan, files) -> None:
    """The error reaches the caller and the rows stay."""
    scan()
    repo.rename(repo.parent.parent / "elsewhere")
    with pytest.raises(OSError, match="No such file"):
        scan()
    assert len(files()) == 3


def test_a_lost_database_loses_nothing(
    repo: Path, database, scan, rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch whose commit failed is stored by the retry, once."""
    failures = iter([DatabaseUnavailableError("away")])
    finished = store.store

    def flaky(*arguments):
        finished(*arguments)
        for failure in failures:
            raise failure

    monkeypatch.setattr(store, "store", flaky)
    begun = time.monotonic()
    assert scan().stored == 2
    assert time.monotonic() - begun < 5
    assert rows("SELECT count(*) FROM contents") == [(2,)]
