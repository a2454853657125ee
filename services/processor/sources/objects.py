"""Read single objects of a git repository whose every file may be hostile.

dulwich's own store follows alternates and links out of the repository, so the files are opened
here: relative to the repository and no link followed. Loose objects as in git's object-file.c.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from services.processor.sources.packs import (
    KINDS,
    MAX_OBJECT_BYTES,
    GitObject,
    Inflater,
    ObjectError,
    Pack,
    TooLargeError,
    open_regular,
)
from services.processor.sources.reading import open_below

MAX_PACKS = 64  # two descriptors each; git itself repacks at 50 (gc.autoPackLimit)
MAX_HEADER_BYTES = 32  # of a loose object: `blob 123` and NUL


class ObjectStore:
    """The objects below one repository's own `objects` directory; nothing beside it is looked at."""

    def __init__(self, repository: int) -> None:
        """`repository`: a descriptor of the directory that holds `objects`. Raises OSError without one."""
        self._directory = open_below(repository, b"objects")
        self._packs = list(self._open_packs())

    def read(self, object_id: bytes, max_bytes: int = MAX_OBJECT_BYTES) -> GitObject:
        """The object with this id of 20 bytes. Raises ObjectError, TooLargeError beyond `max_bytes`."""
        for pack in self._packs:
            offset = pack.offset(object_id)
            if offset is not None:
                return pack.read(offset, max_bytes)
        with self._loose(object_id) as (kind, size, inflater):
            if size > max_bytes:
                raise TooLargeError(size)
            return GitObject(kind, inflater.rest(size))

    def size(self, object_id: bytes) -> int:
        """How many bytes the object has, without inflating it. Raises ObjectError."""
        for pack in self._packs:
            offset = pack.offset(object_id)
            if offset is not None:
                return pack.size(offset)
        with self._loose(object_id) as (_, size, _):
            return size

    def close(self) -> None:
        for pack in self._packs:
            pack.close()
        os.close(self._directory)

    def _open_packs(self) -> Iterator[Pack]:
        """Those that can be read; what lies in the others is missing."""
        try:
            directory = open_below(self._directory, b"pack")
        except OSError:
            return
        try:
            with os.scandir(directory) as entries:
                indices = sorted(entry.name for entry in entries if entry.name.endswith(".idx"))
            for name in indices[:MAX_PACKS]:
                with suppress(OSError, ObjectError):
                    yield Pack(directory, name.removesuffix(".idx"))
        finally:
            os.close(directory)

    @contextmanager
    def _loose(self, object_id: bytes) -> Iterator[tuple[bytes, int, Inflater]]:
        """Kind, size and the bytes to come of an object in a file of its own."""
        name = object_id.hex()
        try:
            directory = open_below(self._directory, name[:2].encode())
            try:
                descriptor = open_regular(directory, name[2:])
            finally:
                os.close(directory)
        except OSError as exc:
            raise ObjectError(f"object {name} is missing") from exc
        try:
            inflater = Inflater(descriptor, 0)
            head, end, rest = inflater.start(MAX_HEADER_BYTES).partition(b"\0")
            kind, _, size = head.partition(b" ")
            if not end or kind not in KINDS.values() or not size.isdigit():
                raise ObjectError(f"object {name} is damaged")
            inflater.push_back(rest)
            yield kind, int(size), inflater
        finally:
            os.close(descriptor)
