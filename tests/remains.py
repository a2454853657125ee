"""What a piece of work leaves behind: processes of any ancestry, and files in the temporary folder."""

import ctypes
import os
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
SETTLING = 30.0  # seconds after which what is still there stays


class Remains:
    """Around some work: orphans of its processes become ours to see, and TMPDIR is a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> Self:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._children = children()
        self._before = {"TMPDIR": os.environ.get("TMPDIR"), "tempdir": tempfile.tempdir}
        os.environ["TMPDIR"] = tempfile.tempdir = str(self._folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        tempfile.tempdir = self._before["tempdir"]
        before = self._before["TMPDIR"]
        os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before)
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def found(self) -> list[str]:
        """Processes and files that were not there before, in words; once they had time to end."""
        end = time.monotonic() + SETTLING
        while (left := self._now()) and time.monotonic() < end:
            time.sleep(0.05)  # a process that was killed is gone when the kernel has come to it
        return left

    def _now(self) -> list[str]:
        processes = [f"process {pid}" for pid in children() - self._children if not _reaped(pid)]
        return processes + [f"file {path}" for path in self._folder.rglob("*")]


def children() -> set[int]:
    """Of this process, zombies among them."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue  # it ended meanwhile
            if int(parent) == os.getpid():
                found.add(int(entry.name))
    return found


def _reaped(pid: int) -> bool:
    """Whether it was an orphan that had ended: taken away, as init does."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
