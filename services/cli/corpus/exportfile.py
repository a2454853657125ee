"""A file that is there whole or not at all, compressed as its name says."""

import gzip
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from services.core.errors import ConfigurationError, RatchetError

GZIP_LEVEL = 3  # a third of the time of the default for a tenth more bytes
STDOUT = "-"


class Sink(Protocol):
    def write(self, data: bytes | bytearray, /) -> Any: ...


@contextmanager
def opened(target: str, *, force: bool) -> Iterator[Sink]:
    """Write to `target`: under a temporary name beside it, moved there when all went well.

    Raises ConfigurationError when it exists and `force` is false, and when its folder cannot be written.
    """
    if target == STDOUT:
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # the reader has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    path = Path(target)
    if path.exists() and (path.is_dir() or not force):
        raise ConfigurationError(
            f"{target} is a directory: name a file"
            if path.is_dir()
            else f"{target} exists: --force replaces it"
        )
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        file = unfinished.open("xb")
    except OSError as exc:
        raise ConfigurationError(f"{target} cannot be written ({exc.strerror}): {path.parent}") from exc
    try:
        with file:
            with _compressed(file, path.suffix) as sink:
                yield sink
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except RatchetError:  # some are OSErrors too, but not of this file
        raise
    except OSError as exc:
        raise ConfigurationError(f"{target} cannot be written: {exc.strerror or exc}") from exc
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def _compressed(file: BinaryIO, suffix: str) -> Iterator[Sink]:
    if suffix == ".gz":
        with gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0) as packed:
            yield packed
    elif suffix == ".zst":
        from backports import zstd

        with zstd.ZstdFile(file, "wb") as packed:
            yield cast("Sink", packed)
    else:
        yield file
