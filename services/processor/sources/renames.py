"""Which file that a commit took away came back under another name in the same commit."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

CANDIDATES = 8  # that a file is compared with, line by line
MOST_REMOVED = 500  # files, for those of other names to be candidates: git stops at 1,000 (diff.renameLimit)
SIMILAR = 0.5  # of the lines of the longer one; git's rename detection asks for as much of the bytes


class Renames:
    """Of one commit against one parent.

    Args:
        removed: path → id of the files that the parent has and the commit has not.
        read: the bare text of a blob, or None when it cannot be had.
    """

    def __init__(self, removed: Mapping[bytes, bytes], read: Callable[[bytes], bytes | None]) -> None:
        self._removed = removed
        self._read = read
        self._by_id: dict[bytes, bytes] | None = None
        self._by_name: defaultdict[bytes, list[bytes]] = defaultdict(list)

    def origin(self, path: bytes, blob: bytes) -> tuple[bytes, bytes] | None:
        """Path and id of what a new file was before: the same bytes, or else most of the same lines."""
        if not self._removed:
            return None
        if self._by_id is None:
            self._by_id = {each: name for name, each in self._removed.items()}
            for name in sorted(self._removed):
                self._by_name[_last(name)].append(name)
        if (same := self._by_id.get(blob)) is not None:
            return same, blob
        candidates = self._by_name.get(_last(path), [])
        if not candidates and len(self._removed) <= MOST_REMOVED:
            candidates = [name for name in self._removed if _suffix(name) == _suffix(path)]
            candidates.sort(key=lambda name: (-_common_end(_last(name), _last(path)), name))
        return self._most_similar(blob, candidates[:CANDIDATES])

    def _most_similar(self, blob: bytes, candidates: list[bytes]) -> tuple[bytes, bytes] | None:
        text = self._read(blob) if candidates else None
        if not text:
            return None
        best, most, lines = None, 0, Counter(text.splitlines())
        for name in candidates:
            old = Counter((self._read(self._removed[name]) or b"").splitlines())
            shared = (lines & old).total()
            if shared > most and shared >= SIMILAR * max(lines.total(), old.total()):
                best, most = (name, self._removed[name]), shared
        return best


def _last(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _suffix(path: bytes) -> bytes:
    return _last(path).rpartition(b".")[2]


def _common_end(one: bytes, other: bytes) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one[::-1], other[::-1], strict=False)) if a != b), len(one)
    )
