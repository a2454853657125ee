"""What a process in a cage lays down before it runs anything foreign. None of it can be taken back."""

from __future__ import annotations

import posix
import resource

WAITING = 4.0  # times its processor time a program may take by the clock: a busy machine is not its fault
MOST_WAITING = 60.0  # seconds beyond its processor time, whatever that is


def by_the_clock(seconds: float) -> float:
    """Seconds after which a program with so many of processor time is ended, even if it only slept."""
    return min(WAITING * seconds, seconds + MOST_WAITING)


def lay_down(memory: int, processes: int, file: int, open_files: int, cpu_seconds: int | None = None) -> None:
    """Limit this process and all that it will start: address space and one file in bytes.

    `processes` counts threads too and is of the user; 0 is left to the seccomp filter, which knows threads.
    """
    pairs = [
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, file),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_CORE, 0),
    ]
    if processes:
        pairs.append((resource.RLIMIT_NPROC, processes))
    if cpu_seconds is not None:
        pairs.append((resource.RLIMIT_CPU, cpu_seconds))
    for name, value in pairs:
        resource.setrlimit(name, (value, value))


def become(uid: int | None) -> None:
    """Turn from the cage's root into a user who owns nothing, with no capability left."""
    if uid is not None:
        posix.setgroups([])
        posix.setresgid(uid, uid, uid)
        posix.setresuid(uid, uid, uid)
