"""What was taken back does not come in again: not by its path, and not by its text elsewhere."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from services.core import db
from services.core.settings import Settings
from services.processor import claims, pipeline
from services.processor.claims import Entry
from services.processor.reasons import BY_THE_WALK, Reason
from services.processor.values import Found
from services.trainer.forgetting import course, steps
from services.trainer.forgetting.words import Policy
from tests.integration.processor.conftest import code


@pytest.fixture
def forget(database: db.Database) -> Callable[..., int]:
    """`forget("repo/src/")`: barred and erased, as far as the ledger goes; its number."""

    def run(asked: str, *, everywhere: bool = False) -> int:
        with database.transaction() as tx:
            looked = course.look(tx, asked, Policy.REFUSE, everywhere=everywhere)
        begun = course.begin(database, looked, "me", "asked to", {})
        steps.erase(database, begun)
        steps.finish(database, begun)
        return begun.forgetting_id

    return run


def test_a_rescan_does_not_bring_a_path_back(repo: Path, scan, files, forget, rows, monkeypatch) -> None:
    """Nor an edit of it: the file is not even opened."""
    scan()
    forget("repo/src/apples.py")
    (repo / "src" / "apples.py").write_text(code("apples") + "# edited\n")
    (repo / "src" / "plums.py").write_text(code("plums"))
    scan()
    assert files() == {
        "repo/src/apples.py": "forgotten",
        "repo/src/pears.py": None,
        "repo/src/plums.py": None,
        "repo/short.py": "too_short",
    }
    assert rows("SELECT count(*) FROM contents WHERE text LIKE '%%apples%%'") == [(0,)]
    monkeypatch.setattr(pipeline.Pipeline, "take_one", lambda _self: pytest.fail("there was a chunk"))
    assert scan().unchanged == 4


@pytest.mark.parametrize("asked", ["repo", "repo/src", "repo/src/"])
def test_nothing_new_comes_into_a_forgotten_folder(repo: Path, scan, files, forget, rows, asked: str) -> None:
    scan()
    forget(asked)
    (repo / "src" / "deep").mkdir()
    (repo / "src" / "deep" / "plums.py").write_text(code("plums"))
    scan()
    assert files()["repo/src/deep/plums.py"] == "forgotten"
    assert rows("SELECT count(*) FROM contents WHERE text <> ''") == [(0,)]


def test_the_same_text_is_refused_elsewhere(repo: Path, ingest: Path, scan, files, forget) -> None:
    """Under any name, in any source, whenever it comes."""
    scan()
    forget("repo/src/apples.py")
    (ingest / "fork").mkdir()
    (ingest / "fork" / "copied.py").write_text(code("apples"))
    (ingest / "fork" / "plums.py").write_text(code("plums"))
    scan("fork")
    assert (files()["fork/copied.py"], files()["fork/plums.py"]) == ("forgotten", None)


def test_a_source_that_was_away_is_still_forgotten(repo: Path, scan, files, forget, rows) -> None:
    scan()
    forget("repo")
    for path in (repo / "src").iterdir():
        path.rename(repo / path.name)
    scan()
    assert set(files().values()) == {"forgotten"}


def test_a_chunk_that_was_cut_before_is_refused_when_it_is_stored(
    repo: Path, scan, files, forget, database, ingest, rules, judge
) -> None:
    """A walk was under way: what it left to be read is judged by the tombstones of now."""
    scan()
    forget("repo/src/")
    (repo / "src" / "plums.py").write_text(code("plums"))
    found = Found("src/plums.py", 1, 1)
    with database.transaction() as tx:
        (row,) = tx.all("find_source", name="repo")
        claims.put(tx, row.id, [Entry(found, is_known=False)])
    pipeline.Pipeline(database, ingest, rules, judge).take_one()
    assert files()["repo/src/plums.py"] == "forgotten"


def test_what_waits_to_be_stored_goes_too(repo: Path, scan, forget, database, rows) -> None:
    """A chunk may hold the bytes of an archive's members."""
    scan()
    with database.transaction() as tx:
        (row,) = tx.all("find_source", name="repo")
        claims.put(tx, row.id, [Entry(Found("src/x.py", 1, 1), is_known=False, data=b"secret")])
    forget("repo/src/")
    assert rows("SELECT count(*) FROM claims") == [(0,)]


def test_members_of_archives_are_forgotten_by_name(ingest: Path, scan, files, forget) -> None:
    with tarfile.open(ingest / "box.tar", "w") as box:
        for noun in ("apples", "pears"):
            data = code(noun).encode()
            member = tarfile.TarInfo(f"src/{noun}.py")
            member.size = len(data)
            box.addfile(member, io.BytesIO(data))
    scan("box.tar")
    forget("box.tar/src/apples.py")
    scan("box.tar")
    assert files() == {"box.tar/src/apples.py": "forgotten", "box.tar/src/pears.py": None}


def test_a_near_duplicate_elsewhere_takes_its_place(repo: Path, ingest: Path, scan, files, forget) -> None:
    """It is not the same text: forgetting one does not forget the other."""
    scan()
    (ingest / "fork").mkdir()
    (ingest / "fork" / "like.py").write_text(code("apples") + "# one more line\n")
    scan("fork")
    alike = ("repo/src/apples.py", "fork/like.py")
    kept, refused = sorted(alike, key=lambda path: files()[path] or "")
    assert (files()[kept], files()[refused]) == (None, "near_duplicate")
    forget(kept)
    scan(refused.partition("/")[0])
    assert (files()[kept], files()[refused]) == ("forgotten", None)


def test_what_is_remembered_is_read_and_stored_again(
    repo: Path, scan, files, forget, rows, database, tmp_path
) -> None:
    """Text and units as they were, in the row that had stayed."""
    scan()
    text = "SELECT id, text, live FROM contents ORDER BY id"
    units = "SELECT content_id, kind, name, start_byte, end_byte FROM units ORDER BY 1, ordinal"
    before = rows(text), rows(units)
    forget("repo")
    assert rows(units) == []
    course.undo(database, Settings(adapters_dir=tmp_path), "repo")
    scan()
    assert (rows(text), rows(units)) == before
    assert files()["repo/src/apples.py"] is None


def test_reasons_by_the_walk_are_the_same_for_both_services() -> None:
    assert set(steps.BY_THE_WALK) == {str(reason) for reason in BY_THE_WALK}
    assert Reason.FORGOTTEN == "forgotten"
