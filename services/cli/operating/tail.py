"""The lines of a log as they are written, also when it is set aside and begun anew.

Either by renaming it, as Python's rotating handlers do, or by copying it to `.1` and emptying it in place, as
`services.cli.stack.rotation` does: then `.1` is another file than before.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

LINE = 1000  # bytes of a line, at a guess, when the last ones are looked for
AT_LEAST = 64 * 1024  # bytes of the end that are read for them


class Tail:
    """One log; `last` once, then `more` again and again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._part = b""  # of a line that is not whole yet
        self._copy = self._copy_now()

    @property
    def name(self) -> str:
        """The service that writes it."""
        return self.path.stem

    @property
    def unfinished(self) -> str:
        """The beginning of a line at the end of what was read."""
        return self._part.decode(errors="replace")

    def last(self, number: int) -> list[str]:
        """The last whole lines, at most so many."""
        if not self._opened():
            return []
        assert self._file is not None
        begin = max(0, self._size() - max(AT_LEAST, LINE * number))
        self._file.seek(begin)
        lines = list(self._whole(self._file.read()))
        return lines[1 if begin else 0 :][-number:]

    def more(self) -> Iterator[str]:
        """What was written since: the rest of a file that was set aside, then the new one."""
        if not self._opened():
            return
        assert self._file is not None
        copy, before = self._copy_now(), self._copy
        self._copy = copy
        if copy not in (None, before, self._identity(os.fstat(self._file.fileno()))):
            yield from self._whole(self._copied_away(self._file.tell()))
            self._file.seek(0)
        elif self._size() < self._file.tell():
            self._file.seek(0)  # emptied without a copy
        yield from self._whole(self._file.read())
        if self._is_set_aside():
            yield from self._whole(b"\n" if self._part else b"")
            self.close()
            yield from self.more()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> bool:
        if self._file is None:
            try:
                self._file = self.path.open("rb")
            except FileNotFoundError:
                return False  # not begun yet
        return True

    def _size(self) -> int:
        assert self._file is not None
        return os.fstat(self._file.fileno()).st_size

    @property
    def _copy_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.1")

    def _copy_now(self) -> tuple[int, int] | None:
        """Which file is the newest copy; None while there is none."""
        try:
            return self._identity(self._copy_path.stat())
        except FileNotFoundError:
            return None

    @staticmethod
    def _identity(stat: os.stat_result) -> tuple[int, int]:
        return stat.st_dev, stat.st_ino

    def _copied_away(self, position: int) -> bytes:
        """What the newest copy has behind what was read before the log was emptied."""
        try:
            with self._copy_path.open("rb") as copy:
                copy.seek(position)
                return copy.read()
        except FileNotFoundError:
            return b""

    def _is_set_aside(self) -> bool:
        """Whether another file has the name by now."""
        assert self._file is not None
        try:
            return not os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except FileNotFoundError:
            return False

    def _whole(self, data: bytes) -> Iterator[str]:
        *lines, self._part = (self._part + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace").rstrip("\r")
