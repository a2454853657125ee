"""Sources behind a URL that fsspec understands: `s3://bucket/corpus`, each folder in it a source.

The same rules as in a directory on disk, files and ignore files alike. Archives and loose files at the top
are passed over, options files too: put those on a disk.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from services.core.errors import ConfigurationError
from services.processor import thresholds
from services.processor.judging import Judge
from services.processor.look import FirstLook
from services.processor.reasons import Reason
from services.processor.rules import Rules
from services.processor.scan import SourceScan
from services.processor.sources import ignore, licence_files
from services.processor.sources.ignore import IGNORE_FILES, PASSED_OVER, IgnoreRules, Scope, is_vendored
from services.processor.sources.options import Options
from services.processor.sources.paths import fitting, printable, too_deep, too_long
from services.processor.sources.reading import VANISHED, Reader, too_large
from services.processor.sources.source import Kind, Source
from services.processor.sources.walk import Walk
from services.processor.stages import licence
from services.processor.values import Found, Read, Rejection

STATE = (
    "ETag",
    "etag",
    "md5Hash",
    "LastModified",
    "mtime",
    "updated",
    "created",
)  # one that changes with the bytes


def is_url(path: str) -> bool:
    return "://" in path


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder behind a URL. Raises ConfigurationError when nothing here understands the URL."""

    url: str

    def open(self) -> tuple[Any, str]:
        """The file system and the folder's path in it."""
        try:
            import fsspec

            file_system, path = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as exc:
            raise ConfigurationError(f"{self.url} cannot be read here: {exc}") from exc
        return file_system, str(path).rstrip("/")

    def entries(self) -> list[dict[str, Any]]:
        """What lies in it. Raises OSError when that cannot be told."""
        file_system, path = self.open()
        try:
            return list(file_system.ls(path, detail=True, refresh=True))
        except Exception as exc:  # each file system has errors of its own
            raise OSError(0, f"{type(exc).__name__}: {exc}", self.url) from exc

    def sources(self) -> list[Source]:
        """The folders in it. Raises OSError as `entries` does."""
        names = sorted(_name(entry) for entry in self.entries() if entry["type"] == "directory")
        return [
            Source(name, Kind.DIRECTORY, Path(name))
            for name in names
            if not name.startswith(".") and name not in PASSED_OVER
        ]

    def below(self, name: str) -> "Folder":
        return Folder(f"{self.url.rstrip('/')}/{name}")


class FolderWalk:
    """A walk over a folder behind a URL: see walk.Walk."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._files, self._root = folder.open()
        self._patterns_left = ignore.MAX_PATTERNS_OF_SOURCE
        self.directories: list[str] = []
        self.unlisted: list[str] = []

    def __iter__(self) -> Iterator[Found]:
        yield from self._entries("", 0, None, self._folder.entries())

    def _entries(
        self, path: str, depth: int, scope: Scope | None, entries: Sequence[Mapping[str, Any]]
    ) -> Iterator[Found]:
        named = {_name(entry): entry for entry in entries if not _is_itself(entry, f"{self._root}/{path}")}
        scope = self._scope(path, scope, named)
        keys = {
            fitting(path + printable(name) + "/" * (entry["type"] == "directory")): (name, entry)
            for name, entry in named.items()
        }
        for below, (name, entry) in sorted(keys.items()):
            if entry["type"] != "directory":
                yield self._file(path + name, below, entry, scope)
            elif name not in PASSED_OVER:
                yield from self._directory(path + name + "/", below, depth + 1, scope)

    def _directory(self, raw: str, path: str, depth: int, scope: Scope | None) -> Iterator[Found]:
        refused = too_deep(depth) or too_long(path)
        if is_vendored(raw.rstrip("/").rpartition("/")[2]):
            refused = Rejection(Reason.VENDORED, "directory")
        elif scope is not None and scope.ignores(path):
            refused = Rejection(Reason.IGNORED, "directory")
        if refused is None:
            try:
                entries = self._files.ls(f"{self._root}/{raw.rstrip('/')}", detail=True)
            except Exception as exc:
                self.unlisted.append(path)
                refused = Rejection(Reason.UNREADABLE, f"directory: {type(exc).__name__}")
        if refused is not None:
            yield Found(path, 0, 0, refused)
            return
        yield from self._entries(raw, depth, scope, entries)

    def _file(self, raw: str, path: str, entry: Mapping[str, Any], scope: Scope | None) -> Found:
        refused = too_long(raw)
        if entry.get("islink"):
            refused = Rejection(Reason.SYMLINK, "not followed")
        elif entry["type"] != "file":
            refused = Rejection(Reason.SPECIAL_FILE, str(entry["type"]))
        elif scope is not None and scope.ignores(path):
            refused = Rejection(Reason.IGNORED, "file")
        spelt = None if raw == path else raw.encode("utf-8", "surrogateescape")
        return Found(path, int(entry.get("size") or 0), _state(entry), refused, spelt)

    def _scope(self, path: str, above: Scope | None, named: Mapping[str, object]) -> Scope | None:
        lines: list[str] = []
        for name in IGNORE_FILES:
            if name in named:
                data = self._files.cat_file(f"{self._root}/{path}{name}", 0, ignore.MAX_IGNORE_BYTES)
                lines += data.decode("utf-8", "replace").splitlines()
        if not lines:
            return above
        rules = IgnoreRules(lines, min(ignore.MAX_PATTERNS, self._patterns_left))
        self._patterns_left -= rules.size
        return Scope(rules, len(path), above) if rules.size else above


class FolderReader:
    """The files of such a source: see reading.Reader."""

    def __init__(self, folder: Folder) -> None:
        self._files, self._root = folder.open()

    def read(self, found: Found) -> Read | Rejection:
        if found.size_bytes > thresholds.MAX_FILE_BYTES:
            return too_large(found.size_bytes)
        raw = found.path if found.raw is None else found.raw.decode("utf-8", "surrogateescape")
        try:
            data = self._files.cat_file(f"{self._root}/{raw}", 0, thresholds.MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return VANISHED
        except Exception as exc:  # each file system has errors of its own
            return Rejection(Reason.UNREADABLE, type(exc).__name__)
        if len(data) > thresholds.MAX_FILE_BYTES:
            return too_large(len(data))
        return Read(bytes(data), found.size_bytes, found.mtime_ns)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        """Nothing stays open."""


class FolderScan(SourceScan):
    """A scan of a source that lies in such a folder."""

    def __init__(self, folder: Folder, *told: Any, **options: Any) -> None:
        super().__init__(*told, **options)
        self._own = folder.below(self._source.name)

    def _options(self) -> Options:
        return Options()

    def _walk(self, chosen: Options) -> Walk:  # noqa: ARG002 (there are none)
        return FolderWalk(self._own)

    def _licence(self, chosen: Options) -> str | None:  # noqa: ARG002
        names = sorted(_name(entry) for entry in self._own.entries() if entry["type"] == "file")
        texts = [name for name in names if licence_files.is_at_top(name, depth=0)][: licence_files.MOST]
        with FolderReader(self._own) as files:
            reads = [files.read(Found(name, 0, 0)) for name in texts]
        known = {
            licence.of_text(read.data.decode("utf-8", "replace")) for read in reads if isinstance(read, Read)
        }
        return " OR ".join(sorted(name for name in known if name is not None)) or None


class FolderLook(FirstLook):
    """A first look at chunks of sources that lie in such a folder."""

    def __init__(self, folder: Folder, rules: Rules, judge: Judge | None = None) -> None:
        super().__init__(Path(), rules, judge)
        self._folder = folder

    def _reader(self, name: str) -> Reader:
        return FolderReader(self._folder.below(name))


Root = Path | Folder  # where sources lie


def look_in(root: Root, rules: Rules) -> FirstLook:
    return FolderLook(root, rules) if isinstance(root, Folder) else FirstLook(root, rules)


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry["name"]).rstrip("/").rpartition("/")[2]


def _is_itself(entry: Mapping[str, Any], folder: str) -> bool:
    """Object stores may list a folder's own marker among what is in it."""
    return str(entry["name"]).strip("/") == folder.strip("/")


def _state(entry: Mapping[str, Any]) -> int:
    """63 bits that change when the file does, as far as its file system tells."""
    told = next((str(entry[key]) for key in STATE if entry.get(key) is not None), "")
    return int.from_bytes(hashlib.sha256(told.encode()).digest()[:8], "big") >> 1
