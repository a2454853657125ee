"""A repository's HEAD, history and objects: all of it may have been made to harm."""

import hashlib
import os
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from dulwich.pack import write_pack_index_v2

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.sources import bare, git, packs, trees
from services.processor.sources.bare import BlobReader, TreeWalk
from services.processor.sources.history import History
from services.processor.sources.objects import ObjectStore
from services.processor.sources.options import Options
from services.processor.sources.packs import ObjectError, TooLargeError
from services.processor.values import Found, Read, Rejection
from tests.unit.processor.repositories import LINK, SUBMODULE, Made


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "repo")


class Audit:
    """What the interpreter says it opens and starts, while it is asked to note it."""

    programs: ClassVar[list[str]] = []
    opened: ClassVar[list[str]] = []
    active = False


def _note(event: str, args: tuple[object, ...]) -> None:
    if not Audit.active:
        return
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn"):
        Audit.programs.append(event)
    elif event == "open":
        Audit.opened.append(str(args[0]))


@pytest.fixture
def audit() -> Iterator[type[Audit]]:
    if not getattr(Audit, "installed", False):
        sys.addaudithook(_note)
        Audit.installed = True
    Audit.programs.clear()
    Audit.opened.clear()
    Audit.active = True
    yield Audit
    Audit.active = False


def outcomes(path: Path, chosen: Options | None = None) -> dict[str, bytes | Reason]:
    """What a walk and a reader make of a bare repository."""
    found = list(TreeWalk(path, chosen or Options()))
    paths = [item.path for item in found]
    assert paths == sorted(set(paths)), "in ascending order, each once"
    rows: dict[str, bytes | Reason] = {}
    with BlobReader(path) as files:
        for item in found:
            outcome = item.refused or files.read(item)
            rows[item.path] = outcome.data if isinstance(outcome, Read) else outcome.reason
    return rows


def changes(path: Path, **limits) -> dict[str, tuple[str, int]]:
    return {change.path: (change.commit, change.time) for change in History(path, **limits)}


# HEAD


def test_head_is_found_on_a_branch_and_detached(made: Made) -> None:
    """By its own file, packed, or as an id."""
    commit = made.commit({"a.py": b"x"})
    assert git.head(made.path) == commit
    (made.path / "refs/heads/main").unlink()
    assert git.head(made.path) is None
    (made.path / "packed-refs").write_text(
        f"# pack-refs\n{'0' * 40} refs/heads/mai\n{commit} refs/heads/main\n"
    )
    assert git.head(made.path) == commit
    (made.path / "HEAD").write_text(commit + "\n")
    (made.path / "packed-refs").unlink()
    assert git.head(made.path) == commit


@pytest.mark.parametrize(
    "text",
    [
        "ref: ../../secret",
        "ref: refs/../../../secret",
        "ref: /etc/passwd",
        "ref: refs/heads/loop",
        "",
        "x" * 99,
        "\0",
    ],
)
def test_a_head_that_leads_elsewhere_is_none(made: Made, text: str) -> None:
    """Out of the repository, in a circle, nowhere."""
    made.commit({"a.py": b"x"})
    (made.path.parent / "secret").write_text("1" * 40)
    (made.path / "refs/heads/loop").write_text("ref: refs/heads/loop\n")
    (made.path / "HEAD").write_text(text)
    assert git.head(made.path) is None


def test_links_inside_a_repository_are_not_followed(made: Made) -> None:
    """Neither a ref nor the objects."""
    commit = made.commit({"a.py": b"x"})
    (made.path.parent / "ref").write_text(commit)
    (made.path / "refs/heads/main").unlink()
    (made.path / "refs/heads/main").symlink_to("../../../ref")
    assert git.head(made.path) is None
    (made.path / "HEAD").write_text(commit)
    (made.path / "objects").rename(made.path.parent / "objects")
    (made.path / "objects").symlink_to("../objects")
    assert not git.is_repository(made.path)
    assert changes(made.path) == {}
    with pytest.raises(OSError, match=r"directory|symbolic"):
        outcomes(made.path)


def test_a_working_tree_has_its_history_in_git(tmp_path: Path) -> None:
    """The directory .git, but no link of that name and no file that points elsewhere."""
    made = Made(tmp_path / "work", bare=False)
    commit = made.commit({"a.py": b"x"})
    assert git.head(made.path) == commit
    assert changes(made.path) == {"a.py": (commit, 1_700_000_000)}
    for name in ("linked", "pointed"):
        (tmp_path / name).mkdir()
    (tmp_path / "linked" / ".git").symlink_to(tmp_path / "work" / ".git")
    (tmp_path / "pointed" / ".git").write_text(f"gitdir: {tmp_path}/work/.git\n")
    assert git.head(tmp_path / "linked") is None
    assert git.head(tmp_path / "pointed") is None
    assert changes(tmp_path / "pointed") == {}


def test_nothing_is_run_and_no_configuration_read(made: Made, audit: type[Audit]) -> None:
    """Hooks, fsmonitor, filters, included files: what git would run or read stays untouched."""
    commit = made.commit({"a.py": b"x", ".gitattributes": b"* filter=evil\n"})
    (made.path / "config").write_text(
        "[core]\n\tfsmonitor = touch ran\n\thooksPath = /tmp\n\tpager = touch ran\n\tbare = true\n"
        '[include]\n\tpath = /etc/passwd\n[filter "evil"]\n\tsmudge = touch ran\n'
    )
    audit.opened.clear()
    assert git.head(made.path) == commit
    assert outcomes(made.path)["a.py"] == b"x"
    assert changes(made.path)
    assert audit.programs == []
    assert not [path for path in audit.opened if "config" in path or "passwd" in path or "hooks" in path]


def test_alternates_outside_are_not_followed(tmp_path: Path) -> None:
    """What lies there is missing."""
    rich, poor = Made(tmp_path / "rich"), Made(tmp_path / "poor")
    commit = rich.commit({"a.py": b"x"})
    (poor.path / "objects/info").mkdir(exist_ok=True)
    (poor.path / "objects/info/alternates").write_text(f"{rich.path}/objects\n")
    (poor.path / "HEAD").write_text(commit)
    assert git.head(poor.path) == commit
    assert changes(poor.path) == {}
    with pytest.raises(OSError, match="HEAD cannot be read"):
        outcomes(poor.path)


# History


def test_each_path_has_its_newest_commit(made: Made) -> None:
    """Its id and time, loose or packed."""
    first = made.commit({"a.py": b"1", "d/b.py": b"1", "gone.py": b""}, seconds=100)
    second = made.commit({"a.py": b"1", "d/b.py": b"2"}, [first], seconds=200)
    expected = {"a.py": (first, 100), "d/b.py": (second, 200)}
    assert changes(made.path) == expected
    made.pack()
    assert changes(made.path) == expected


def test_a_merge_touches_only_what_differs_from_all_parents(made: Made) -> None:
    """What it takes from one side was touched there."""
    base = made.commit({"a": b"0", "b": b"0", "c": b"0"}, seconds=100)
    left = made.commit({"a": b"1", "b": b"0", "c": b"1"}, [base], seconds=200)
    right = made.commit({"a": b"0", "b": b"2", "c": b"2"}, [base], seconds=300)
    merge = made.commit({"a": b"1", "b": b"2", "c": b"3"}, [left, right], seconds=400)
    assert changes(made.path) == {"a": (left, 200), "b": (right, 300), "c": (merge, 400)}


def test_only_what_came_since_is_told(made: Made) -> None:
    """Whatever was told before; from a commit that is unknown, everything."""
    first = made.commit({"a": b"1", "b": b"1"}, seconds=100)
    second = made.commit({"a": b"2", "b": b"1"}, [first], seconds=200)
    third = made.commit({"a": b"2", "b": b"1", "c": b""}, [second], seconds=300)
    assert changes(made.path, since=first) == {"a": (second, 200), "c": (third, 300)}
    assert changes(made.path, since=third) == {}
    assert len(changes(made.path, since="f" * 40)) == 3


def test_a_merged_branch_older_than_since_is_told(made: Made) -> None:
    """New is what `since` does not descend from, not what is younger."""
    base = made.commit({"a": b"0"}, seconds=100)
    main = made.commit({"a": b"1"}, [base], seconds=500)
    side = made.commit({"a": b"0", "old": b""}, [base], seconds=200)
    made.commit({"a": b"1", "old": b""}, [main, side], seconds=600)
    assert changes(made.path, since=main) == {"old": (side, 200)}


def test_a_budget_ends_the_history_early(made: Made) -> None:
    """What was told is right, and that it is not all is said."""
    commit = made.commit({"f0": b""}, seconds=0)
    for number in range(1, 6):
        commit = made.commit({f"f{n}": b"" for n in range(number + 1)}, [commit], seconds=number)
    told = History(made.path, max_commits=2)
    assert [change.path for change in told] == ["f5", "f4"]
    assert not told.complete
    told = History(made.path)
    assert len(list(told)) == 6
    assert told.complete


def test_a_shallow_clone_tells_what_it_can(made: Made) -> None:
    """The commit whose parent is missing is where knowledge ends."""
    first = made.commit({"a": b"1"}, seconds=100)
    second = made.commit({"a": b"1", "b": b""}, [first], seconds=200)
    third = made.commit({"a": b"1", "b": b"", "c": b""}, [second], seconds=300)
    (made.path / "objects" / first[:2] / first[2:]).unlink()
    assert changes(made.path) == {"c": (third, 300)}


def test_impossible_times_are_kept_within_a_timestamp(made: Made) -> None:
    """A database has no year 30,000."""
    made.commit({"a": b"1"}, seconds=999_999_999_999_999)
    ((_, seconds),) = changes(made.path).values()
    assert seconds == git.LAST_SECOND


def test_a_tree_that_names_itself_over_and_over_ends(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git bomb: ten levels of ten are ten thousand million files."""
    monkeypatch.setattr(bare, "MAX_ENTRIES", 1_000)
    tree = made.repo[made.commit({"f": b""}).encode()].tree
    for _ in range(10):
        data = b"".join(b"40000 d%d\0" % n + bytes.fromhex(tree.decode()) for n in range(10))
        tree = _loose(made.path, b"tree", data).encode()
    made.commit_of(tree)
    rows = outcomes(made.path)
    assert len(rows) <= 1_001
    assert list(rows.values())[-1] is Reason.ARCHIVE_TOO_LARGE
    told = History(made.path, budget_seconds=0.3)
    assert sum(1 for _ in told) == 0
    assert not told.complete


def test_a_name_with_a_slash_cannot_pass_for_another_path(made: Made) -> None:
    """Nor one that is empty or leads upwards."""
    blob = _loose(made.path, b"blob", b"x")
    inner = _loose(made.path, b"tree", b"100644 z\0" + bytes.fromhex(blob))
    entries = b"".join(b"100644 %s\0" % name + bytes.fromhex(blob) for name in (b"a/b", b"", b"..", b"c"))
    tree = _loose(made.path, b"tree", entries + b"40000 a\0" + bytes.fromhex(inner))
    made.commit_of(tree.encode())
    rows = outcomes(made.path)
    assert rows["a/z"] == rows["c"] == b"x"
    assert rows[r"a\x2fb"] is rows[r"\x00"] is rows[".."] is Reason.ARCHIVE_PATH


# A bare repository as a source


def test_a_bare_repository_is_walked_and_read(made: Made) -> None:
    """Links and submodules by name only, vendored directories in one row, its .ratchetignore held."""
    files = {
        "a.py": b"one",
        "a/b.py": b"two",
        "a-c.py": b"three",
        "link.py": b"/etc/passwd",
        "sub": b"",
        "vendor/x.py": b"",
        "gen/x.py": b"",
        ".ratchetignore": b"gen/\n",
        ".gitignore": b"a.py\n",
        "big.py": b"x" * (thresholds.MAX_FILE_BYTES + 1),
        "caf\udce9.py": b"raw",
    }
    made.commit(files, modes={"link.py": LINK, "sub": SUBMODULE})
    expected = {
        "a.py": b"one",
        "a/b.py": b"two",
        "a-c.py": b"three",
        "link.py": Reason.SYMLINK,
        "sub": Reason.SPECIAL_FILE,
        "vendor/": Reason.VENDORED,
        "gen/": Reason.IGNORED,
        ".ratchetignore": b"gen/\n",
        ".gitignore": b"a.py\n",
        "big.py": Reason.TOO_LARGE,
        r"caf\xe9.py": b"raw",
    }
    assert outcomes(made.path) == expected
    made.pack()
    assert outcomes(made.path) == expected


def test_a_blob_keeps_its_stand_in_for_a_time(made: Made) -> None:
    """While its bytes stay; and its size is known without reading it."""
    made.commit({"a.py": b"same", "b.py": b"one"})
    before = {found.path: found for found in TreeWalk(made.path, Options())}
    made.commit({"a.py": b"same", "b.py": b"two"})
    after = {found.path: found for found in TreeWalk(made.path, Options())}
    assert before["a.py"] == after["a.py"]
    assert before["b.py"].mtime_ns != after["b.py"].mtime_ns
    assert before["b.py"].size_bytes == 3


def test_a_missing_object_is_a_reason(made: Made) -> None:
    """A file's or a folder's; the others are read."""
    made.commit({"a.py": b"x", "b.py": b"y", "d/c.py": b"z"})
    tree = {e.path: e.sha for e in made.repo[made.repo[made.repo.head()].tree].iteritems()}
    for name in (b"a.py", b"d"):
        sha = tree[name].decode()
        (made.path / "objects" / sha[:2] / sha[2:]).unlink()
    assert outcomes(made.path) == {"a.py": Reason.UNREADABLE, "b.py": b"y", "d/": Reason.UNREADABLE}
    entries = TreeWalk(made.path, Options())
    list(entries)
    assert entries.unlisted == ["d/"]


def test_an_empty_repository_has_no_files(made: Made) -> None:
    """And no commit."""
    assert outcomes(made.path) == {}
    assert git.head(made.path) is None


# Objects


def _loose(path: Path, kind: bytes, data: bytes, size: int | None = None) -> str:
    """A loose object, announcing another size if told to; its id."""
    head = b"%s %d\0" % (kind, len(data) if size is None else size)
    name = hashlib.sha1(head + data).hexdigest()
    file = path / "objects" / name[:2] / name[2:]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(zlib.compress(head + data))
    return name


def _head_of(kind: int, size: int) -> bytes:
    head, size = kind << 4 | size & 15, size >> 4
    out = bytearray()
    while size:
        out.append(head | 0x80)
        head, size = size & 0x7F, size >> 7
    return bytes([*out, head])


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _packed(path: Path, objects: list[tuple[bytes, bytes]]) -> ObjectStore:
    """A pack of these objects, each an id and the bytes of its entry."""
    data, index = bytearray(b"PACK" + struct.pack(">2L", 2, len(objects))), []
    for name, raw in objects:
        index.append((name, len(data), 0))
        data += raw
    folder = path / "objects/pack"
    folder.mkdir(exist_ok=True)
    (folder / "pack-1.pack").write_bytes(bytes(data) + bytes(20))
    with (folder / "pack-1.idx").open("wb") as file:
        write_pack_index_v2(file, sorted(index), bytes(20))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return ObjectStore(descriptor)
    finally:
        os.close(descriptor)


ONE, TWO = b"\x01" * 20, b"\x02" * 20


def test_a_delta_is_applied_to_its_base(made: Made) -> None:
    """By offset and by id; its size is known before."""
    base = _head_of(3, 5) + zlib.compress(b"hello")
    delta = _number(5) + _number(10) + b"\x90\x05" * 2
    for head in (b"\x60" + _number(len(base)), b"\x70" + ONE):
        entry = bytes([head[0] | len(delta)]) + head[1:] + zlib.compress(delta)
        store = _packed(made.path, [(ONE, base), (TWO, entry)])
        assert store.size(TWO) == 10
        assert store.read(TWO).data == b"hellohello"
        with pytest.raises(TooLargeError):
            store.read(TWO, 9)
        store.close()


def test_a_delta_that_is_its_own_base_ends(made: Made) -> None:
    """Two that build on one another, too."""
    delta = zlib.compress(_number(1) + _number(1) + b"\x90\x01")
    store = _packed(made.path, [(ONE, b"\x74" + TWO + delta), (TWO, b"\x74" + ONE + delta)])
    with pytest.raises(ObjectError, match="without end"):
        store.read(ONE)
    store.close()


def test_a_delta_bomb_is_refused_by_its_announced_size(made: Made) -> None:
    """And one that lies about it never writes more than it said."""
    base = _head_of(3, 60_000) + zlib.compress(bytes(60_000))
    copies = b"\xb0\x60\xea" * 20_000
    for announced, error in ((1_200_000_000, TooLargeError), (10, ObjectError)):
        delta = _number(60_000) + _number(announced) + copies
        entry = _head_of(7, len(delta)) + ONE + zlib.compress(delta)
        store = _packed(made.path, [(ONE, base), (TWO, entry)])
        with pytest.raises(error):
            store.read(TWO)
        store.close()


@pytest.mark.parametrize("size", [10, 10**6, 10**12, 10**25])
def test_a_zlib_bomb_is_given_up(made: Made, size: int) -> None:
    """Loose or packed: no more than announced is inflated, and no more than allowed announced."""
    name = _loose(made.path, b"blob", bytes(8_000_000), size)
    store = _packed(made.path, [(ONE, _head_of(3, min(size, 10**12)) + zlib.compress(bytes(8_000_000)))])
    for object_id in (bytes.fromhex(name), ONE):
        with pytest.raises(ObjectError):
            store.read(object_id, thresholds.MAX_FILE_BYTES)
    store.close()


def test_a_pack_cut_short_is_damage(made: Made) -> None:
    """At every length, index and pack."""
    made.commit({"a.py": b"x" * 400, "b.py": b"y"})
    made.pack()
    ids = [bytes.fromhex(name.decode()) for name in made.repo.object_store]
    for suffix in ("pack", "idx"):
        (file,) = (made.path / "objects/pack").glob(f"*.{suffix}")
        file.chmod(0o600)
        whole = file.read_bytes()
        for length in range(0, len(whole), 7):
            file.write_bytes(whole[:length])
            descriptor = os.open(made.path, os.O_RDONLY)
            store = ObjectStore(descriptor)
            os.close(descriptor)
            for object_id in ids:
                try:
                    store.read(object_id)
                    store.size(object_id)
                except ObjectError:
                    pass
            store.close()
        file.write_bytes(whole)


def test_an_id_that_is_no_blob_is_not_read_as_one(made: Made) -> None:
    """A tree's bytes are no code; a wrong id is no error either."""
    made.commit({"a.py": b"x"})
    tree = made.repo[made.repo.head()].tree.decode()
    with BlobReader(made.path) as files:
        for blob in (tree, "f" * 40, "zz", None):
            assert isinstance(files.read(Found("a.py", 0, 0, blob=blob)), Rejection)


def test_caches_stay_within_their_size(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bases and of trees."""
    monkeypatch.setattr(packs, "CACHE_BYTES", 5_000)
    monkeypatch.setattr(trees, "CACHED_ENTRIES", 10)
    commit = made.commit({"f0": b""}, seconds=0)
    for number in range(1, 20):
        commit = made.commit({f"d{n}/f": b"" for n in range(number + 1)}, [commit], seconds=number)
    made.pack()
    assert len(changes(made.path)) == 20
