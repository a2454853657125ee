"""The walk and the reading, on real directories made to be hostile."""

import os
import socket
import time
from pathlib import Path

import pytest

from services.processor import ingest, thresholds
from services.processor.ingest import Walk, printable, read, sources
from services.processor.reasons import Reason
from services.processor.values import Rejection

as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A source called `repo` in an ingest folder, beside a secret that lies outside."""
    (tmp_path / "secret.py").write_text("outside = True\n")
    repo = tmp_path / "ingest" / "repo"
    repo.mkdir(parents=True)
    return repo


def walked(repo: Path, source: str = "repo") -> dict[str, Reason | None]:
    walk = Walk(repo.parent, source)
    return {found.path: found.refused.reason if found.refused else None for found in walk}


def test_files_are_met_in_the_order_of_their_names(repo: Path) -> None:
    """With paths below the source, size and mtime."""
    (repo / "b").mkdir()
    (repo / "b" / "two.py").write_text("2")
    (repo / "a.py").write_text("one")
    os.utime(repo / "a.py", ns=(5, 7))
    walk = Walk(repo.parent, "repo")
    first, second = walk
    assert (first.path, first.size_bytes, first.mtime_ns) == ("a.py", 3, 7)
    assert second.path == "b/two.py"
    assert walk.directories == ["", "b/"]


def test_links_are_named_and_not_followed(repo: Path) -> None:
    """Escaping, looping, dangling, to a file or a directory: each is a symlink and nothing more."""
    (repo / "escape").symlink_to("/")
    (repo / "loop").symlink_to(".")
    (repo / "dangling").symlink_to("nowhere")
    (repo / "file.py").symlink_to("../../secret.py")
    assert walked(repo) == dict.fromkeys(["escape", "loop", "dangling", "file.py"], Reason.SYMLINK)


def test_a_source_that_is_a_link_is_none(repo: Path) -> None:
    """A link among the sources is a loose entry, refused like any link."""
    (repo.parent / "linked").symlink_to(repo.parent.parent)
    assert sources(repo.parent) == ["repo", "."]
    assert walked(repo, ingest.LOOSE_FILES) == {"linked": Reason.SYMLINK}


def test_a_source_swapped_for_a_link_is_not_entered(repo: Path) -> None:
    """Even between being listed and being walked."""
    repo.rmdir()
    repo.symlink_to(repo.parent.parent)
    with pytest.raises(OSError, match=r"directory|symbolic"):
        walked(repo)


def test_special_files_are_never_opened(repo: Path) -> None:
    """A FIFO or socket would block its reader for ever."""
    os.mkfifo(repo / "pipe.py")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(repo / "sock.py"))
        assert walked(repo) == {"pipe.py": Reason.SPECIAL_FILE, "sock.py": Reason.SPECIAL_FILE}


def test_a_file_swapped_for_a_fifo_does_not_block(repo: Path) -> None:
    """What became special between listing and opening is found out without waiting for a writer."""
    (repo / "a.py").write_text("x")
    for found in Walk(repo.parent, "repo"):
        (repo / "a.py").unlink()
        os.mkfifo(repo / "a.py")
        data = read(found.directory, found.name)
    assert isinstance(data, Rejection)
    assert data.reason == Reason.SPECIAL_FILE


def test_a_file_swapped_for_a_link_is_not_read(repo: Path) -> None:
    """What became a link between listing and opening leads nowhere."""
    (repo / "a.py").write_text("x")
    for found in Walk(repo.parent, "repo"):
        (repo / "a.py").unlink()
        (repo / "a.py").symlink_to("../../secret.py")
        data = read(found.directory, found.name)
    assert isinstance(data, Rejection)


def test_a_directory_swapped_for_a_link_stays_the_directory(repo: Path) -> None:
    """Files are opened in the directory that was listed, wherever its name leads by now."""
    (repo / "d").mkdir()
    (repo / "d" / "secret.py").write_text("inside = True\n")
    for found in Walk(repo.parent, "repo"):
        (repo / "d").rename(repo / "moved")
        (repo / "d").symlink_to("../..")
        assert read(found.directory, found.name) == b"inside = True\n"


def test_a_file_that_vanishes_is_a_reason(repo: Path) -> None:
    """Gone between being listed and being opened."""
    (repo / "a.py").write_text("x")
    for found in Walk(repo.parent, "repo"):
        (repo / "a.py").unlink()
        data = read(found.directory, found.name)
    assert isinstance(data, Rejection)
    assert data.reason == Reason.VANISHED


def test_an_unreadable_file_is_a_reason(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's own words are its detail."""
    monkeypatch.setattr(
        os, "open", lambda *_args, **_more: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))
    )
    data = read(0, "a.py")
    assert data == Rejection(Reason.UNREADABLE, "Permission denied")


@as_root
def test_an_unreadable_directory_is_a_reason(repo: Path) -> None:
    """Its row stands for what lies below, of which nothing is known."""
    (repo / "shut").mkdir(mode=0)
    walk = Walk(repo.parent, "repo")
    (found,) = walk
    assert found.refused is not None
    assert found.refused.reason == Reason.UNREADABLE
    assert walk.unlisted == ["shut/"]


def test_a_sparse_file_of_10_gigabytes_is_not_read(repo: Path) -> None:
    """Its size is enough to refuse it."""
    with (repo / "huge.py").open("wb") as file:
        file.truncate(10_000_000_000)
    begun = time.monotonic()
    for found in Walk(repo.parent, "repo"):
        data = read(found.directory, found.name)
    assert isinstance(data, Rejection)
    assert data.reason == Reason.TOO_LARGE
    assert time.monotonic() - begun < 1


def test_vendored_directories_have_one_row_and_caches_none(repo: Path) -> None:
    """Nothing below either is listed."""
    for directory in (
        ".git/hooks",
        "__pycache__",
        "node_modules/left-pad",
        "src/vendor",
        "a.dist-info",
        "src/lib",
    ):
        (repo / directory).mkdir(parents=True)
        (repo / directory / "x.py").write_text("x")
    assert walked(repo) == {
        "a.dist-info": Reason.VENDORED,
        "node_modules": Reason.VENDORED,
        "src/lib/x.py": None,
        "src/vendor": Reason.VENDORED,
    }


def test_the_ignore_files_of_the_root_are_honoured(repo: Path) -> None:
    """.gitignore first, then .ratchetignore, which may take back."""
    (repo / ".gitignore").write_text("build/\n*.log.py\n")
    (repo / ".ratchetignore").write_text("!keep.log.py\n")
    (repo / "build").mkdir()
    for name in ("build/x.py", "a.log.py", "keep.log.py", "a.py"):
        (repo / name).write_text("x")
    assert walked(repo) == {
        ".gitignore": None,
        ".ratchetignore": None,
        "build": Reason.IGNORED,
        "a.log.py": Reason.IGNORED,
        "keep.log.py": None,
        "a.py": None,
    }


def test_a_costly_ignore_pattern_is_not_applied(repo: Path) -> None:
    """A pattern made to take exponential time is left out; the others hold."""
    (repo / ".gitignore").write_text("*a" * 40 + "b\n\\\nreal.py\n")
    (repo / ("a" * 200)).write_text("x")
    (repo / "real.py").write_text("x")
    begun = time.monotonic()
    assert walked(repo)["real.py"] == Reason.IGNORED
    assert time.monotonic() - begun < 1


def test_names_that_are_not_utf8_are_escaped(repo: Path) -> None:
    r"""Bytes that no text can hold become \xNN, and the file is read all the same."""
    (repo / os.fsdecode(b"caf\xe9\n\t.py")).write_text("x")
    for found in Walk(repo.parent, "repo"):
        assert found.path == "caf\\xe9\n\t.py"
        assert read(found.directory, found.name) == b"x"


def test_printable_names_are_always_utf8() -> None:
    """A lone surrogate in a name's bytes is escaped too."""
    assert printable(os.fsdecode(b"\xed\xa0\x80")).encode()


def test_deep_and_long_paths_are_refused(repo: Path) -> None:
    """Nesting and length are bounded, and every row's path fits an index entry."""
    deep = repo
    for _ in range(thresholds.MAX_DEPTH + 3):
        deep /= "d" * 30
        deep.mkdir()
    (deep / "x.py").write_text("x")
    (path, reason), *rest = walked(repo).items()
    assert (reason, rest) == (Reason.TOO_DEEP, [])
    assert len(path.encode()) <= thresholds.MAX_PATH_BYTES + 20


def test_loose_files_are_a_source_of_their_own(repo: Path) -> None:
    """Hidden ones, such as .gitkeep, are none; directories beside them are not entered."""
    (repo / "inner.py").write_text("x")
    (repo.parent / ".gitkeep").write_text("")
    assert sources(repo.parent) == ["repo"]
    (repo.parent / "script.py").write_text("x")
    assert sources(repo.parent) == ["repo", ingest.LOOSE_FILES]
    assert walked(repo, ingest.LOOSE_FILES) == {"script.py": None}


def test_a_later_write_shows_in_the_mtime(repo: Path) -> None:
    """Reading a file just written waits out the clock's tick: the next write cannot go unnoticed."""
    file = repo / "a.py"
    file.write_text("one")
    (found,) = Walk(repo.parent, "repo")
    descriptor = os.open(repo, os.O_RDONLY)
    try:
        assert read(descriptor, "a.py") == b"one"
    finally:
        os.close(descriptor)
    file.write_text("two")
    assert file.stat().st_mtime_ns > found.mtime_ns
