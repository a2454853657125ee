"""Log files of a local run, kept small while their writers go on writing.

A part's log is written by it and by the processes it starts, torchrun and PostgreSQL's among them, through
one open file. So the file stays: what is in it is copied away and it is emptied in place (logrotate's
`copytruncate`). Whoever writes must have opened it for appending. How the files are named, and how a reader
follows them: services/core/log.py.
"""

import os
import shutil
from pathlib import Path

MAX_BYTES = 10_000_000  # of a log: above, it is rotated
KEPT = 3  # copies of each log besides it: 40 MB a part, and what comes between two looks


def rotate(log: Path, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> bool:
    """Rotate a log that is too large; whether it was.

    What is written in the microseconds between the last look at its size and the emptying is lost. On a disk
    without room for the copy the oldest copy goes, and the next look tries again; a folder that cannot be
    written to leaves the log as it is.
    """
    try:
        if log.stat().st_size <= max_bytes:
            return False
        _make_way(log, kept)
        with log.open("r+b") as source, _copied(log).open("ab") as copy:
            source.seek(copy.tell())
            while source.tell() < os.fstat(source.fileno()).st_size:
                shutil.copyfileobj(source, copy)
            os.truncate(source.fileno(), 0)
    except OSError:
        return False
    return True


def _copy(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def _make_way(log: Path, kept: int) -> None:
    """Every copy one further, the oldest away."""
    _copy(log, kept).unlink(missing_ok=True)
    for number in range(kept - 1, 0, -1):
        if _copy(log, number).exists():
            _copy(log, number).replace(_copy(log, number + 1))


def _copied(log: Path) -> Path:
    """The newest copy, of what the log has now: there at once and whole."""
    unfinished = log.with_name(f".{log.name}.rotating")
    try:
        shutil.copyfile(log, unfinished)
        return unfinished.replace(_copy(log, 1))
    finally:
        unfinished.unlink(missing_ok=True)
