"""Notice changes in the ingest folder as they happen (inotify), or leave it to the next rescan.

The library's recursive mode follows symbolic links: a link to / would have it watch the whole
machine. So it is told the very directories that our own walk has listed, and looks no deeper.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from services.core.process import StopSignal

log = logging.getLogger(__name__)

MAX_WATCHED = 8_192  # directories; the kernel's usual limit for a user, deeper ones wait for the rescan
GROUPED = 1_000  # milliseconds in which changes are gathered once there is one
QUIET = 200  # milliseconds without a change after which the gathering ends early
POLL_INTERVAL = 5.0  # seconds between two rescans where there are no events


class _Stop:
    """StopSignal as the library wants to ask it."""

    def __init__(self, stop: StopSignal) -> None:
        self._stop = stop

    def is_set(self) -> bool:
        return bool(self._stop)


class Watcher:
    """Watches a set of directories, not what lies deeper; without inotify it says so once and waits."""

    def __init__(self, ingest: Path, stop: StopSignal) -> None:
        self._ingest = ingest
        self._stop = stop
        self._watched: frozenset[str] = frozenset()
        self._notify: RustNotify | None = None
        self._warned = False

    def follow(self, directories: Iterable[str]) -> bool:
        """Watch these directories of the ingest folder; true if the set changed: look again once more."""
        shallow_first = sorted({self._ingest / directory for directory in directories}, key=_depth)
        chosen = frozenset(str(path) for path in shallow_first[:MAX_WATCHED] if _is_watchable(path))
        if chosen == self._watched and (self._notify or self._warned):
            return False
        before = self._notify
        self._notify = self._open(sorted(chosen))
        self._watched = chosen
        if before is not None:
            before.close()
        return self._notify is not None

    def wait(self, seconds: float) -> set[str] | None:
        """Sources in which something changed within so many seconds; None if one must look oneself."""
        if self._notify is None:
            self._stop.wait(min(seconds, POLL_INTERVAL))
            return None
        try:
            happened = self._notify.watch(GROUPED, QUIET, max(1, int(seconds * 1000)), _Stop(self._stop))
        except WatchfilesRustInternalError as exc:  # a name that is not UTF-8, which the library cannot say
            log.debug("%s", exc)
            self.close()
            self._watched = frozenset()
            return None
        if isinstance(happened, str):  # timeout, stop or signal
            return None
        parts = {Path(path).relative_to(self._ingest).parts for _, path in happened}
        loose = {"."} if any(len(part) == 1 for part in parts) else set()
        return loose | {part[0] for part in parts if part}

    def close(self) -> None:
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def _open(self, directories: list[str]) -> RustNotify | None:
        try:
            return RustNotify(directories, False, False, 0, False, True)
        except FileNotFoundError:  # gone since it was listed: the next scan lists anew
            return None
        except (OSError, WatchfilesRustInternalError) as exc:
            if not self._warned:
                log.warning("no file events (%s): looking every %g s instead", exc, POLL_INTERVAL)
            self._warned = True
            return None


def _depth(path: Path) -> int:
    return len(path.parts)


def _is_watchable(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:  # the library takes UTF-8 only
        return False
    return path.is_dir() and not path.is_symlink()
