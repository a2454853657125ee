"""What lies in the ingest folder: which kinds of sources there are and when one is unchanged."""

import os
import zipfile
from pathlib import Path

import msgspec
import pytest

from services.processor.sources import source
from services.processor.sources.options import Options, parse
from services.processor.sources.source import Kind
from services.processor.values import Found, Read
from tests.unit.processor.repositories import Made


def kinds(ingest: Path) -> dict[str, Kind]:
    return {found.printable: found.kind for found in source.find(ingest)}


def test_each_kind_is_told_from_the_others(tmp_path: Path) -> None:
    """In the order of names, the loose files last; options and hidden names are none."""
    Made(tmp_path / "bare.git")
    Made(tmp_path / "work", bare=False)
    (tmp_path / "plain").mkdir()
    (tmp_path / ".adding-1-x").mkdir()
    (tmp_path / "plain.ratchet.yaml").write_text("")
    (tmp_path / "a.tar.gz").write_bytes(b"")
    (tmp_path / "b.zip").mkdir()
    assert kinds(tmp_path) == {
        "a.tar.gz": Kind.ARCHIVE,
        "b.zip": Kind.DIRECTORY,
        "bare.git": Kind.BARE,
        "plain": Kind.DIRECTORY,
        "work": Kind.GIT,
    }
    (tmp_path / "loose.py").write_text("x")
    assert list(kinds(tmp_path).items())[-1] == (".", Kind.LOOSE)


def test_links_are_no_sources(tmp_path: Path) -> None:
    """To a directory, an archive, or a repository: loose entries, each refused as a link."""
    (tmp_path / "ingest").mkdir()
    Made(tmp_path / "bare")
    (tmp_path / "real.zip").write_bytes(b"")
    (tmp_path / "ingest" / "linked").symlink_to(tmp_path / "bare")
    (tmp_path / "ingest" / "a.zip").symlink_to(tmp_path / "real.zip")
    (loose,) = source.find(tmp_path / "ingest")
    assert loose.kind is Kind.LOOSE
    refused = [found.refused.reason for found in source.walk(loose, Options()) if found.refused]
    assert refused == ["symlink", "symlink"]


def test_a_directory_whose_git_is_a_link_or_a_file_is_only_a_directory(tmp_path: Path) -> None:
    """Its history lies elsewhere."""
    made = Made(tmp_path / "work", bare=False)
    for name in ("linked", "pointed"):
        (tmp_path / name).mkdir()
    (tmp_path / "linked" / ".git").symlink_to(made.path / ".git")
    (tmp_path / "pointed" / ".git").write_text("gitdir: ../work/.git\n")
    assert kinds(tmp_path) == {"linked": Kind.DIRECTORY, "pointed": Kind.DIRECTORY, "work": Kind.GIT}


def test_a_name_that_is_not_utf8_has_one_in_print(tmp_path: Path) -> None:
    """As the database holds it."""
    os.mkdir(os.fsencode(tmp_path) + b"/caf\xe9")
    assert kinds(tmp_path) == {r"caf\xe9": Kind.DIRECTORY}


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Not an empty one: nothing may be retired then."""
    with pytest.raises(FileNotFoundError):
        source.find(tmp_path / "none")


def test_an_archive_is_unchanged_while_size_and_time_stay(tmp_path: Path) -> None:
    """And what is said of it."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.py", "x")
    (found,) = source.find(tmp_path)
    before = source.stamp(found, Options())
    assert before == source.stamp(found, Options())
    assert before != source.stamp(found, parse(b"licence: MIT", "x"))
    os.utime(found.path, ns=(1, 1))
    assert before != source.stamp(found, Options())
    assert [(item.path, data) for item, data in source.stream(found, Options())] == [("a.py", b"x")]


def test_a_bare_repository_is_unchanged_while_head_stays(tmp_path: Path) -> None:
    """Whatever else moves in it."""
    made = Made(tmp_path / "bare")
    first = made.commit({"a.py": b"1"})
    (found,) = source.find(tmp_path)
    before = source.stamp(found, Options())
    made.pack()
    assert before == source.stamp(found, Options())
    made.commit({"a.py": b"2"}, [first])
    assert before != source.stamp(found, Options())


def test_a_directory_has_to_be_walked(tmp_path: Path) -> None:
    """Nothing short of that tells."""
    (tmp_path / "d").mkdir()
    (found,) = source.find(tmp_path)
    assert source.stamp(found, Options()) is None


def test_what_was_found_is_read_elsewhere(tmp_path: Path) -> None:
    """A Found survives the journey through a row or a pipe, from a directory and a bare repository."""
    made = Made(tmp_path / "bare")
    made.commit({"d/a.py": b"bare"})
    (tmp_path / "tree" / "\udcff").mkdir(parents=True)
    (tmp_path / "tree" / "\udcff" / "a.py").write_bytes(b"tree")
    read = []
    for found in source.find(tmp_path):
        sent = [msgspec.msgpack.encode(item) for item in source.walk(found, Options())]
        with source.reader(found) as files:
            for item in sent:
                outcome = files.read(msgspec.msgpack.decode(item, type=Found))
                assert isinstance(outcome, Read)
                read.append(outcome.data)
    assert read == [b"bare", b"tree"]
