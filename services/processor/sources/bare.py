"""A bare repository as a source: the tree of its HEAD is walked, blobs are read by their ids."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.sources import ignore
from services.processor.sources.git import Repository, TreeEntry
from services.processor.sources.ignore import PASSED_OVER, IgnoreRules, Scope, is_vendored
from services.processor.sources.options import Options
from services.processor.sources.packs import ObjectError, TooLargeError
from services.processor.sources.paths import fitting, printable_bytes, too_deep, too_long
from services.processor.sources.reading import too_large
from services.processor.values import Found, Read, Rejection

MAX_ENTRIES = 1_000_000  # of a tree, which may name one subtree over and over
SUBMODULE = 0o160000  # the mode of an entry that names a commit of another repository


class TreeWalk:
    """The files of a bare repository's HEAD in the order of a directory walk (see `walk`).

    Its `.ratchetignore` files hold, its `.gitignore` files do not: what they name was committed
    nevertheless.
    """

    def __init__(self, path: Path, options: Options) -> None:
        self._path = path
        self._options = options
        self._entries_left = MAX_ENTRIES
        self._patterns_left = ignore.MAX_PATTERNS_OF_SOURCE
        self.directories = [name for name in ("", "refs/", "refs/heads/") if (path / name).is_dir()]
        self.unlisted: list[str] = []

    def __iter__(self) -> Iterator[Found]:
        """Raises OSError when the repository or its HEAD cannot be read: nothing is known then."""
        with Repository(self._path) as repository:
            if repository.head is None:
                return
            try:
                root = repository.commit(repository.head).tree
                entries = repository.tree(root)
            except ObjectError as exc:
                raise OSError(0, f"HEAD cannot be read: {exc}") from exc
            yield from self._entries(repository, entries, "", 0, None)

    def _entries(
        self, repository: Repository, entries: list[TreeEntry], path: str, depth: int, scope: Scope | None
    ) -> Iterator[Found]:
        scope = self._scope(repository, entries, path, scope)
        keyed = {
            fitting(path + _printable(entry.name) + "/" * entry.is_directory): entry for entry in entries
        }
        for below, entry in sorted(keyed.items()):
            if entry.name.decode("utf-8", "replace") in PASSED_OVER:
                continue
            self._entries_left -= 1
            if self._entries_left <= 0:
                if self._entries_left == 0:
                    more = f"the repository has more than {MAX_ENTRIES} entries, the rest is not read"
                    yield Found(below, 0, 0, Rejection(Reason.ARCHIVE_TOO_LARGE, more))
                return
            if entry.is_directory:
                yield from self._directory(repository, entry, below, depth + 1, scope)
            else:
                yield self._file(repository, entry, below, scope)

    def _directory(
        self, repository: Repository, entry: TreeEntry, path: str, depth: int, scope: Scope | None
    ) -> Iterator[Found]:
        refused = self._refuse_directory(entry, path, depth, scope)
        if refused is None:
            try:
                entries = repository.tree(entry.id)
            except ObjectError as exc:
                self.unlisted.append(path)
                refused = Rejection(Reason.UNREADABLE, f"directory: {exc}")
        if refused is not None:
            yield Found(path, 0, 0, refused)
            return
        yield from self._entries(repository, entries, path, depth, scope)

    def _refuse_directory(
        self, entry: TreeEntry, path: str, depth: int, scope: Scope | None
    ) -> Rejection | None:
        if is_vendored(printable_bytes(entry.name)):
            return Rejection(Reason.VENDORED, "directory")
        if scope is not None and scope.ignores(path):
            return Rejection(Reason.IGNORED, "directory")
        return _refuse_name(entry.name) or too_deep(depth) or too_long(path) or self._options.refuse(path)

    def _file(self, repository: Repository, entry: TreeEntry, path: str, scope: Scope | None) -> Found:
        refused: Rejection | None = None
        size = 0
        if stat.S_ISLNK(entry.mode):
            refused = Rejection(Reason.SYMLINK, "not followed")
        elif stat.S_IFMT(entry.mode) == SUBMODULE:
            refused = Rejection(Reason.SPECIAL_FILE, "submodule: another repository")
        elif scope is not None and scope.ignores(path):
            refused = Rejection(Reason.IGNORED, "file")
        else:
            refused = _refuse_name(entry.name) or too_long(path) or self._options.refuse(path)
        if refused is None:
            try:
                size = repository.objects.size(bytes.fromhex(entry.id.decode()))
            except ObjectError as exc:
                refused = Rejection(Reason.UNREADABLE, str(exc))
        blob = entry.id.decode()
        return Found(path, size, int(blob[:16], 16) >> 1, refused, blob=blob)

    def _scope(
        self, repository: Repository, entries: list[TreeEntry], path: str, above: Scope | None
    ) -> Scope | None:
        for entry in entries:
            if entry.name == b".ratchetignore" and stat.S_ISREG(entry.mode):
                try:
                    object_id = bytes.fromhex(entry.id.decode())
                    lines = repository.objects.read(object_id, ignore.MAX_IGNORE_BYTES).data
                except ObjectError:
                    return above
                most = min(ignore.MAX_PATTERNS, self._patterns_left)
                rules = IgnoreRules(lines.decode("utf-8", "replace").splitlines(), most)
                self._patterns_left -= rules.cost
                return Scope(rules, len(path), above)
        return above


class BlobReader:
    """The blobs of a bare repository, by the ids that a walk found."""

    def __init__(self, path: Path) -> None:
        self._repository = Repository(path)

    def read(self, found: Found) -> Read | Rejection:
        if found.blob is None:
            return Rejection(Reason.UNREADABLE, "not an object of a repository")
        try:
            read = self._repository.objects.read(bytes.fromhex(found.blob), thresholds.MAX_FILE_BYTES)
        except TooLargeError as exc:
            return too_large(exc.size_bytes)
        except (ObjectError, OSError, ValueError) as exc:
            return Rejection(Reason.UNREADABLE, str(exc)[:300])
        if read.kind != b"blob":
            return Rejection(Reason.UNREADABLE, f"object {found.blob} is no blob")
        return Read(read.data, len(read.data), found.mtime_ns)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._repository.objects.close()


def _printable(name: bytes) -> str:
    """A name in one component: git's own trees hold no slash in one, others could pass for another path."""
    return printable_bytes(name or b"\0").replace("/", r"\x2f")


def _refuse_name(name: bytes) -> Rejection | None:
    """Names that no tree of git's own making has."""
    if name in (b"", b".", b"..") or b"/" in name:
        return Rejection(Reason.ARCHIVE_PATH, "a name that leads elsewhere")
    return None
