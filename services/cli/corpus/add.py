"""`ratchet add`: copy a directory or an archive into the ingest folder, or clone a repository into it.

Everything is made under a hidden name, which no processor looks at, and renamed when it is whole.
"""

import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

from services.cli.environment import Environment
from services.core.errors import SourceError
from services.processor.sources import archives, options
from services.processor.sources.ignore import PASSED_OVER
from services.processor.sources.reading import FILE_FLAGS

LEFT_OUT = PASSED_OVER - {".git"}  # the repository is kept: it says when a file changed last
QUIET = 1.0  # seconds between two lines of progress
MAX_NAME_BYTES = 200


@dataclass
class Added:
    """What came in, for `--json`."""

    name: str
    path: str
    updated: bool = False  # a clone that was there already
    commit: str | None = None
    files: int = 0
    bytes: int = 0
    left_out: int = 0  # links, special files, what could not be read


class Progress:
    """One line on stderr, now and then."""

    def __init__(self) -> None:
        self._next = time.monotonic() + QUIET

    def say(self, text: str) -> None:
        if text and time.monotonic() >= self._next:
            print(f"ratchet: {text.splitlines()[-1]}", file=sys.stderr)
            self._next = time.monotonic() + QUIET


def run(
    environment: Environment,
    what: str,
    *,
    name: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_json: bool = False,
) -> None:
    """Add `what`, a path or an https URL, to the ingest folder. Raises SourceError, ConfigurationError."""
    added = add(environment.settings.ingest_dir, what, name=name, include=include, exclude=exclude)
    if as_json:
        print(json.dumps(asdict(added)))
    elif added.commit:
        print(f"{'updated' if added.updated else 'cloned'} {added.name} at {added.commit[:12]}")
    else:
        left_out = f", {added.left_out} links and special files left out" if added.left_out else ""
        print(f"added {added.name}: {added.files} files, {added.bytes} bytes{left_out}")


def add(
    ingest: Path,
    what: str,
    *,
    name: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Added:
    """The same, saying nothing but progress."""
    ingest.mkdir(parents=True, exist_ok=True)
    said = _options(include, exclude)
    if "://" in what:
        from services.cli.corpus import clone

        url = clone.check_url(what)
        chosen = _checked(name or _name_of(url))
        return _clone(url, ingest / chosen, said)
    path = Path(what).expanduser()
    chosen = _checked(name or path.resolve().name)
    return _copy(path, ingest / chosen, said)


def _clone(url: str, target: Path, said: bytes | None) -> Added:
    from services.cli.corpus import clone

    progress = Progress()
    if target.exists():
        if clone.origin(target) != url:
            raise _taken(target)
        _say_options(target, said)
        return Added(target.name, str(target), updated=True, commit=clone.fetch(url, target, progress.say))
    temporary = _temporary(target)
    try:
        commit = clone.clone(url, temporary, progress.say)
        _say_options(target, said)
        os.rename(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return Added(target.name, str(target), commit=commit)


def _copy(path: Path, target: Path, said: bytes | None) -> Added:
    """Copy a directory or an archive. Raises SourceError."""
    try:
        mode = path.stat().st_mode  # the path itself may be a link: its owner named it
    except OSError as exc:
        raise SourceError(
            f"{path} cannot be read ({exc.strerror}): expected a directory or an archive"
        ) from exc
    if not stat.S_ISDIR(mode) and not (stat.S_ISREG(mode) and archives.is_archive(target.name)):
        expected = f"a directory or an archive ({', '.join((*archives.ZIPS, *archives.TARS))}, …)"
        raise SourceError(f"{target.name} is neither: expected {expected}")
    if target.parent.resolve().is_relative_to(path.resolve()):
        raise SourceError(f"{path} holds the ingest folder itself: name a directory in it")
    if target.exists() or target.is_symlink():
        raise _taken(target)
    temporary = _temporary(target)
    added = Added(target.name, str(target))
    try:
        if stat.S_ISDIR(mode):
            _copy_directory(path, temporary, added, Progress())
        else:
            _copy_file(os.open(path, FILE_FLAGS & ~os.O_NOFOLLOW), temporary, added)
        _say_options(target, said)
        os.rename(temporary, target)
    except OSError as exc:
        raise SourceError(f"{path} cannot be copied to {target} ({exc.strerror or exc})") from exc
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return added


def _copy_directory(source: Path, target: Path, added: Added, progress: Progress) -> None:
    """All regular files below, with their times; no link is followed and none is copied."""
    for folder, folders, names, descriptor in os.fwalk(source, follow_symlinks=False):
        below = target / os.path.relpath(folder, source)
        below.mkdir()
        entered = [name for name in folders if name not in LEFT_OUT and not _is_link(name, descriptor)]
        added.left_out += sum(_is_link(name, descriptor) for name in folders)
        folders[:] = entered
        for name in names:
            if name in LEFT_OUT:
                continue
            try:
                opened = os.open(name, FILE_FLAGS, dir_fd=descriptor)
            except OSError:
                added.left_out += 1
                continue
            _copy_file(opened, below / name, added)
            progress.say(f"{added.files} files, {added.bytes >> 20} MiB copied")


def _copy_file(opened: int, target: Path, added: Added) -> None:
    """Copy from a descriptor, which is closed; what is no regular file is left out."""
    with os.fdopen(opened, "rb") as source:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            added.left_out += 1
            return
        with target.open("xb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    added.files += 1
    added.bytes += status.st_size


def _is_link(name: str, directory: int) -> bool:
    return stat.S_ISLNK(os.lstat(name, dir_fd=directory).st_mode)


def _options(include: Sequence[str], exclude: Sequence[str]) -> bytes | None:
    """The text of the options file, checked; None without options. Raises ConfigurationError."""
    said = {key: list(value) for key, value in (("include", include), ("exclude", exclude)) if value}
    if not said:
        return None
    text = yaml.safe_dump(said, allow_unicode=True).encode()
    options.parse(text, "--include, --exclude")
    return text


def _say_options(target: Path, said: bytes | None) -> None:
    """Write the options beside the source before it appears; those that are there stay unless told anew."""
    if said is None:
        return
    path = target.with_name(target.name + options.SUFFIX)
    temporary = _temporary(path)
    temporary.write_bytes(said)
    os.replace(temporary, path)


def _temporary(target: Path) -> Path:
    return target.with_name(f".adding-{os.getpid()}-{target.name}")


def _name_of(url: str) -> str:
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2]).removesuffix(".git")


def _checked(name: str) -> str:
    """A name that a source may have. Raises SourceError."""
    is_plain = name.isprintable() and "/" not in name and not name.startswith(".")
    if not name or not is_plain or len(name.encode()) > MAX_NAME_BYTES or name.endswith(options.SUFFIX):
        raise SourceError(
            f"{name[:80]!r} cannot name a source: give another with --name, without / and no dot in front"
        )
    return name


def _taken(target: Path) -> SourceError:
    return SourceError(f"{target} is there already: remove it, or give another name with --name")
