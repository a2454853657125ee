"""Near duplicates and clusters in the database, pass after pass."""

import shutil
import tarfile
from pathlib import Path

import pytest

from tests.integration.processor.conftest import code

WORDS = "amber birch cedar delta ember fjord grove hazel inlet jetty knoll larch maple ocean prairie quartz"


def long_code(noun: str, *, finished: bool = False) -> str:
    """A longer file: one function more or less leaves its texts nearly the same."""
    functions = [
        f"def {word}_{noun}(shelf, limit):\n    rest = sorted(shelf)[{noun}.{word} : limit]\n"
        f"    assert rest, '{word} of {noun} is missing'\n    return [{word}(entry) for entry in rest]\n"
        for word in WORDS.split()
    ]
    tail = "" if finished else "\n\n# TODO\n# FIXME\n# TODO\n# XXX\n"
    return "\n\n".join(functions) + tail


@pytest.fixture
def two(ingest: Path) -> tuple[Path, Path]:
    """Two sources, each with one file; the second's is nearly the same and better."""
    paths = ingest / "one" / "a.py", ingest / "two" / "b.py"
    for path, finished in zip(paths, (False, True), strict=True):
        path.parent.mkdir()
        path.write_text(long_code("apples", finished=finished))
    return paths


def kept(rows) -> list[tuple]:
    return rows(
        "SELECT f.path, f.reason, d.live FROM files f LEFT JOIN contents d"
        " ON d.id = coalesce(f.content_id, f.duplicate_of) WHERE f.retired_at IS NULL ORDER BY 1"
    )


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_the_better_of_two_is_kept(order, two, scan, rows) -> None:
    """Whichever comes first; the other refers to it."""
    for name in order:
        scan(name)
    assert kept(rows) == [("a.py", "near_duplicate", True), ("b.py", None, True)]
    assert rows("SELECT count(*) FROM contents WHERE live") == [(1,)]
    assert rows("SELECT count(DISTINCT root) FROM groups") == [(1,)]
    assert rows("SELECT sum(contents) FROM score_histogram") == [(1,)]


def test_when_the_better_one_goes_the_other_takes_its_place(two, scan, rows) -> None:
    """It is read again at the next scan of its source."""
    scan("one")
    scan("two")
    two[1].unlink()
    assert scan("two").again
    assert rows("SELECT count(*) FROM contents WHERE live") == [(0,)]
    scan("one")
    assert kept(rows) == [("a.py", None, True)]


def test_a_text_that_was_demoted_and_is_kept_again(two, scan, rows) -> None:
    """Its old row is used, with the units it has."""
    scan("one")
    before = rows("SELECT id FROM contents")
    scan("two")
    two[1].unlink()
    scan("two")
    scan("one")
    assert rows("SELECT id FROM contents WHERE live") == before
    assert rows("SELECT count(*) FROM units u JOIN contents c ON c.id = u.content_id WHERE live") == [(16,)]


def test_near_duplicates_share_a_cluster(two, scan, rows) -> None:
    """The split never divides them, whatever came first."""
    scan("one")
    scan("two")
    assert rows("SELECT count(*), count(DISTINCT cluster_id) FROM contents") == [(2, 1)]


def test_two_clusters_that_meet_are_merged(ingest: Path, scan, rows) -> None:
    """A changed file that has become nearly the same as another; where the cluster went is remembered."""
    repo = ingest / "repo"
    repo.mkdir()
    (repo / "a.py").write_text(code("apples"))
    (repo / "b.py").write_text(long_code("pears"))
    scan()
    (first,) = rows("SELECT cluster_id FROM contents WHERE text = %s", code("apples"))
    (repo / "a.py").write_text(long_code("pears", finished=True))
    scan()
    assert rows("SELECT count(DISTINCT cluster_id) FROM contents") == [(1,)]
    (merge,) = rows("SELECT cluster_id, merged_into FROM cluster_merges")
    assert first[0] in merge
    assert kept(rows) == [("a.py", None, True), ("b.py", "near_duplicate", True)]


def test_a_broken_near_duplicate_does_not_take_a_good_ones_place(ingest: Path, scan, files) -> None:
    """The better score does not count when it does not parse."""
    repo = ingest / "repo"
    repo.mkdir()
    (repo / "a.py").write_text(long_code("apples"))
    (repo / "b.py").write_text(long_code("apples", finished=True) + "\n\ndef broken(:\n")
    scan()
    assert files() == {"repo/a.py": None, "repo/b.py": "syntax_error"}


def test_a_near_duplicate_in_an_archive_takes_a_place_that_became_free(two, ingest: Path, scan, rows) -> None:
    """Though the archive itself did not change: it is opened again."""
    with tarfile.open(ingest / "code.tar", "w") as tar:
        tar.add(two[0], "packed.py")
    shutil.rmtree(two[0].parent)
    scan("two")
    scan("code.tar")
    assert kept(rows) == [("b.py", None, True), ("packed.py", "near_duplicate", True)]
    two[1].unlink()
    assert scan("two").again
    scan("code.tar")
    assert kept(rows) == [("packed.py", None, True)]
