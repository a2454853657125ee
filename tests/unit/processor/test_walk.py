"""The walk, on real directories made to be hostile."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.sources import ignore, options, walk
from services.processor.sources.options import Options
from services.processor.sources.walk import DirectoryWalk

as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A source called `repo` in an ingest folder, beside a secret that lies outside."""
    (tmp_path / "secret.py").write_text("outside = True\n")
    repo = tmp_path / "ingest" / "repo"
    repo.mkdir(parents=True)
    return repo


def walked(repo: Path, chosen: Options | None = None, *, shallow: bool = False) -> dict[str, Reason | None]:
    found = list(DirectoryWalk(repo, chosen or Options(), shallow=shallow))
    paths = [item.path for item in found]
    assert paths == sorted(set(paths)), "in ascending order, each once"
    return {item.path: item.refused.reason if item.refused else None for item in found}


def made(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


def test_files_are_met_by_ascending_path(repo: Path) -> None:
    """With paths below the source, size and mtime; `a-b` and `a.py` come before what is in `a`."""
    made(repo, "a/z.py", "a-b.py", "a.py", "B.py")
    os.utime(repo / "a.py", ns=(5, 7))
    entries = DirectoryWalk(repo, Options())
    found = list(entries)
    assert [item.path for item in found] == ["B.py", "a-b.py", "a.py", "a/z.py"]
    assert (found[2].size_bytes, found[2].mtime_ns, found[2].raw) == (1, 7, None)
    assert entries.directories == ["", "a/"]


def test_links_are_named_and_not_followed(repo: Path) -> None:
    """Escaping, looping, dangling, to a file or a directory: each is a symlink and nothing more."""
    (repo / "escape").symlink_to("/")
    (repo / "loop").symlink_to(".")
    (repo / "dangling").symlink_to("nowhere")
    (repo / "file.py").symlink_to("../../secret.py")
    (repo / "node_modules").symlink_to("/")
    assert set(walked(repo).values()) == {Reason.SYMLINK}


def test_a_source_swapped_for_a_link_is_not_entered(repo: Path) -> None:
    """Even between being listed and being walked."""
    repo.rmdir()
    repo.symlink_to(repo.parent.parent)
    with pytest.raises(OSError, match=r"directory|symbolic"):
        walked(repo)


def test_a_directory_swapped_for_a_link_while_walked_is_not_entered(repo: Path) -> None:
    """It is one that could not be listed: what is known below it stays."""
    made(repo, "a.py", "d/secret.py")
    entries = DirectoryWalk(repo, Options())
    found = []
    for item in entries:
        found.append((item.path, item.refused and item.refused.reason))
        if item.path == "a.py":
            (repo / "d").rename(repo.parent / "moved")
            (repo / "d").symlink_to("../..")
    assert found == [("a.py", None), ("d/", Reason.UNREADABLE)]
    assert entries.unlisted == ["d/"]


def test_special_files_are_named(repo: Path) -> None:
    """A FIFO, a socket and, where we may make one, a device."""
    os.mkfifo(repo / "pipe.py")
    expected = ["pipe.py", "sock.py"]
    if os.geteuid() == 0:
        try:
            os.mknod(repo / "disk.py", 0o020600, os.makedev(1, 5))
            expected.append("disk.py")
        except PermissionError:
            pass
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(repo / "sock.py"))
        assert walked(repo) == dict.fromkeys(sorted(expected), Reason.SPECIAL_FILE)


def test_vendored_directories_are_one_row(repo: Path) -> None:
    """Its path ends in a slash; caches and version control are none."""
    made(repo, "src/node_modules/a.js", "x.egg-info/b", ".git/config", "__pycache__/c.pyc", "a.py")
    expected = {"a.py": None, "src/node_modules/": Reason.VENDORED, "x.egg-info/": Reason.VENDORED}
    assert walked(repo) == expected


def test_ignore_files_hold_as_in_git(repo: Path) -> None:
    """Nested ones count from their own directory and come before those above; `!` takes back."""
    made(repo, "a.log", "keep.log", "build/x.py", "src/build/y.py", "src/a.log", "src/gen/z.py", "src/k.py")
    (repo / ".gitignore").write_text("*.log\n!keep.log\n/build/\n")
    (repo / "src" / ".gitignore").write_text("!a.log\n/gen/\n")
    (repo / "src" / ".ratchetignore").write_text("k.py\n")
    rows = walked(repo)
    assert [path for path, reason in rows.items() if reason is Reason.IGNORED] == [
        "a.log",
        "build/",
        "src/gen/",
        "src/k.py",
    ]
    assert rows["keep.log"] is rows["src/a.log"] is rows["src/build/y.py"] is None


def test_an_ignore_file_that_is_a_link_is_not_read(repo: Path) -> None:
    """It could lead anywhere."""
    made(repo, "secret.py")
    (repo.parent / "rules").write_text("*.py\n")
    (repo / ".gitignore").symlink_to("../rules")
    assert walked(repo)["secret.py"] is None


def test_the_private_exclude_file_of_git_is_not_read(repo: Path) -> None:
    """It never travels with a repository."""
    made(repo, ".git/info/exclude", "a.py")
    (repo / ".git" / "info" / "exclude").write_text("a.py\n")
    assert walked(repo) == {"a.py": None}


def test_ignore_patterns_of_a_whole_source_are_limited(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of rules in each of many directories costs no more than that."""
    monkeypatch.setattr(ignore, "MAX_PATTERNS_OF_SOURCE", 3)
    for name in ("a", "b", "c"):
        made(repo, f"{name}/x.py")
        (repo / name / ".gitignore").write_text("x.py\ny.py\n")
    rows = walked(repo)
    assert [rows[f"{name}/x.py"] for name in "abc"] == [Reason.IGNORED, Reason.IGNORED, None]


def test_include_and_exclude_globs_hold(repo: Path) -> None:
    """Nothing but what is included, and of that not what is excluded."""
    made(repo, "src/a.py", "src/gen/b.py", "docs/c.md", "d.py")
    chosen = options.parse(b"include: [/src/]\nexclude: [gen/]", "x")
    assert walked(repo, chosen) == {
        "d.py": Reason.IGNORED,
        "docs/c.md": Reason.IGNORED,
        "src/a.py": None,
        "src/gen/": Reason.IGNORED,
    }


def test_directories_nested_deeper_than_any_are_not_entered(repo: Path) -> None:
    """One row for the first that is too deep."""
    made(repo, "d/" * (thresholds.MAX_DEPTH + 2) + "a.py")
    assert list(walked(repo).values()) == [Reason.TOO_DEEP]


def test_a_loose_walk_stays_in_the_folder_itself(repo: Path) -> None:
    """Files beside the sources, but neither hidden ones, nor archives, nor what is said of a source."""
    made(repo.parent, "loose.py", ".hidden.py", "repo.ratchet.yaml", "repo/a.py", "b.zip")
    (repo.parent / "c.zip").symlink_to("b.zip")
    assert walked(repo.parent, shallow=True) == {"c.zip": Reason.SYMLINK, "loose.py": None}


def test_names_that_are_not_utf8_are_printed_and_kept(repo: Path) -> None:
    """The raw path opens the file again."""
    made(repo, "d\udcff/caf\udce9.py")
    (found,) = DirectoryWalk(repo, Options())
    assert (found.path, found.raw) == (r"d\xff/caf\xe9.py", b"d\xff/caf\xe9.py")


def test_of_two_names_that_print_alike_one_is_met(repo: Path) -> None:
    """So that a path stands for one file."""
    made(repo, "a\udcff.py", r"a\xff.py")
    assert list(walked(repo)) == [r"a\xff.py"]


parts = st.binary(min_size=1, max_size=40).filter(
    lambda n: not set(b"/\0") & set(n) and n not in (b".", b"..")
)
long_parts = st.integers(200, 255).map(lambda n: b"n" * n) | st.sampled_from(
    [b"\xc3\xa9" * 127, b"\xff" * 250]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(parts | long_parts, min_size=1, max_size=9), max_size=12))
def test_any_names_keep_the_order(tmp_path_factory, paths: list[list[bytes]]) -> None:
    """Also of paths that are cut to fit and of names that are not UTF-8: see `walked`."""
    root = tmp_path_factory.mktemp("order")
    for path in paths:
        try:
            made(root, os.fsdecode(b"/".join(path)))
        except OSError:  # a file where a directory would be, a path longer than the system's own limit
            continue
    for path in walked(root):
        assert len(path.encode()) <= thresholds.MAX_PATH_BYTES + 30


def test_the_directories_named_for_watching_are_limited(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million of them must not stay in memory."""
    monkeypatch.setattr(walk, "MAX_DIRECTORIES", 2)
    made(repo, "a/x", "b/x", "c/x")
    entries = DirectoryWalk(repo, Options())
    assert len(list(entries)) == 3
    assert entries.directories == ["", "a/"]


@as_root
def test_a_directory_without_permission_is_unlisted(repo: Path) -> None:
    """Nothing is known of what lies below."""
    made(repo, "d/a.py")
    (repo / "d").chmod(0)
    entries = DirectoryWalk(repo, Options())
    (found,) = entries
    (repo / "d").chmod(0o700)
    assert found.refused is not None
    assert entries.unlisted == ["d/"]


def test_a_folder_of_many_files_is_walked(repo: Path) -> None:
    """5,000 here; 100,000 take as long each."""
    directory = os.open(repo, os.O_RDONLY)
    for number in range(5_000):
        os.close(os.open(f"f{number}.py", os.O_CREAT | os.O_WRONLY, dir_fd=directory))
    os.close(directory)
    assert len(walked(repo)) == 5_000
