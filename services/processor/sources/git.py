"""A repository's HEAD, commits and trees: of all its files only objects and refs are read.

Nothing is run and no configuration is read, so that hooks, filters, fsmonitor programs and included
files have no say; alternates, grafts, replacements and `.git` files that point elsewhere are not
followed. What is thereby missing (a shared clone's objects, a shallow one's past) stays unknown.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from dulwich.errors import ObjectFormatException
from dulwich.objects import parse_tree

from services.processor.sources.objects import ObjectStore
from services.processor.sources.packs import ObjectError
from services.processor.sources.reading import DIRECTORY_FLAGS, open_below, read_file
from services.processor.values import Read, Rejection

REF = re.compile(rb"ref: (refs/[!-~]{1,400})\n?\Z")
COMMIT_ID = re.compile(rb"([0-9a-f]{40})\n?\Z")  # SHA-1; repositories of SHA-256 have no history here
COMMIT = re.compile(
    rb"tree ([0-9a-f]{40})\n((?:parent [0-9a-f]{40}\n){0,1000})"
    rb"author [^\n]*\ncommitter [^\n]*> (\d{1,15}) [-+]\d{1,6}\n"
)
MAX_PACKED_REFS_BYTES = 32_000_000
MAX_COMMIT_BYTES = 1_000_000
MAX_SYMBOLIC_REFS = 5  # git's own limit (SYMREF_MAXDEPTH)
LAST_SECOND = 253_402_300_799  # of the year 9999, the last a timestamp of ours can be in


class TreeEntry(NamedTuple):
    name: bytes
    mode: int
    id: bytes  # of 40 hexadecimal digits

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)


class Commit(NamedTuple):
    tree: bytes  # ids of 40 hexadecimal digits
    parents: tuple[bytes, ...]
    time: int  # seconds since 1970, when it was committed


def is_repository(path: Path) -> bool:
    """Whether this directory holds a repository: HEAD, objects and refs, none of them a link."""
    try:
        return (
            stat.S_ISDIR(path.lstat().st_mode)
            and stat.S_ISREG((path / "HEAD").lstat().st_mode)
            and all(stat.S_ISDIR((path / name).lstat().st_mode) for name in ("objects", "refs"))
        )
    except OSError:
        return False


def head(path: Path) -> str | None:
    """The commit that HEAD of the repository in or at `path` is on.

    None without a repository or a commit, or when HEAD is damaged or leads out of the repository.
    """
    try:
        with opened(path) as repository:
            commit_id = _resolve(repository, b"HEAD")
    except OSError:
        return None
    return commit_id.decode() if commit_id else None


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor of the repository of a working tree, or of the bare one at `path`. Raises OSError."""
    root = os.open(path, DIRECTORY_FLAGS)
    try:
        if not is_repository(path / ".git"):
            yield root
            return
        repository = open_below(root, b".git")
        try:
            yield repository
        finally:
            os.close(repository)
    finally:
        os.close(root)


def _resolve(repository: int, name: bytes) -> bytes | None:
    for _ in range(MAX_SYMBOLIC_REFS):
        value = _ref(repository, name)
        if value is None or COMMIT_ID.match(value):
            return value and value[:40]
        symbolic = REF.match(value)
        if symbolic is None or b".." in symbolic[1] or b"//" in symbolic[1]:
            return None
        name = symbolic[1]
    return None


def _ref(repository: int, name: bytes) -> bytes | None:
    """What a ref says: its own file, or else its line in packed-refs."""
    directory, _, last = name.rpartition(b"/")
    try:
        below = open_below(repository, directory)
        try:
            read = read_file(below, last, 1_000)
        finally:
            os.close(below)
        if isinstance(read, Read):
            return read.data
    except OSError:
        pass
    packed = read_file(repository, "packed-refs", MAX_PACKED_REFS_BYTES)
    if isinstance(packed, Rejection):
        return None
    found = re.search(rb"^([0-9a-f]{40}) %s$" % re.escape(name), packed.data, re.MULTILINE)
    return found[1] if found else None


class Repository:
    """An open object store, read as commits and trees. A context manager."""

    def __init__(self, path: Path) -> None:
        """Raises OSError when the repository is gone."""
        with opened(path) as repository:
            self.head = _resolve(repository, b"HEAD")
            self.objects = ObjectStore(repository)

    def commit(self, commit_id: bytes) -> Commit:
        """Raises ObjectError when it is missing or no commit."""
        found = self.objects.read(bytes.fromhex(commit_id.decode()), MAX_COMMIT_BYTES)
        parsed = COMMIT.match(found.data) if found.kind == b"commit" else None
        if parsed is None:
            raise ObjectError(f"{commit_id.decode()} is no commit")
        parents = tuple(line[7:] for line in parsed[2].splitlines())
        return Commit(parsed[1], parents, min(int(parsed[3]), LAST_SECOND))

    def tree(self, tree_id: bytes) -> list[TreeEntry]:
        """Raises ObjectError when it is missing or no tree."""
        found = self.objects.read(bytes.fromhex(tree_id.decode()))
        if found.kind != b"tree":
            raise ObjectError(f"{tree_id.decode()} is no tree")
        try:
            return [TreeEntry(*entry) for entry in parse_tree(found.data, 20)]
        except (ObjectFormatException, ValueError) as exc:
            raise ObjectError(f"{tree_id.decode()} is damaged: {exc}") from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.objects.close()
