"""When each line of the files at HEAD was first written: the commits from HEAD backwards, within a budget.

All files are followed at once. Every line waits at the newest commit that is known to have it; a commit
hands the lines of a file on to the first parent whose version has them too, and those that no parent has
are its own. That is `git blame -w`: a line stays the same line when its white space changes or when its
file is renamed. Lines move from commit to ancestor and never are two, so that the work is bounded by what
is in the repository, and all of it by `budget_seconds`.
"""

import heapq
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from services.processor.sources import line_diff
from services.processor.sources.git import Commit, Repository
from services.processor.sources.line_diff import Block
from services.processor.sources.packs import ObjectError
from services.processor.sources.paths import fitting, printable_bytes
from services.processor.sources.renames import Renames
from services.processor.sources.trees import MAX_COMPARED, Comparison, OutOfBudgetError, Trees
from services.processor.sources.versions import Versions

MAX_COMMITS = 200_000
MAX_FILES = 200_000  # followed at once: 100 MB
MAX_DIFFS = 5_000  # of one file
MAX_RANGES = 1_000_000  # of lines that are held: 150 MB
WHOLE = 1 << 40  # lines: all of a file that was not looked into


# Lines of some version of a file, from 0: the first one, how many, the number of the file at HEAD that they
# are of, and which of its lines the first one is. A tuple, for there are millions.
Range = tuple[int, int, int, int]


class Span(NamedTuple):
    """Lines of a file at HEAD and when they were written."""

    first: int  # from 0
    lines: int  # more than the file has, where all of it is meant
    seconds: int  # since 1970, when their commit was made


class Written(NamedTuple):
    """A file at HEAD: what is not in its spans is older than the walk came, or unknown."""

    blob: bytes  # id of the version that the lines are of
    spans: list[Span]  # in their order


Waiting = dict[bytes, list[Range]]  # by path


class Blame:
    """Run once; afterwards `complete`, `reached` and `commits` hold.

    Args:
        path: of a working tree or a bare repository.
        wanted: paths as Found.path; True where all is known of the version in `since`, which is then the end.
        since: the commit that the last run began with.
        budget_seconds: after so long it stops: what is known then is right, the rest is absent.
        max_commits: the same for the number of commits looked at.
    """

    def __init__(
        self,
        path: Path,
        wanted: Mapping[str, bool],
        since: str | None = None,
        *,
        budget_seconds: float,
        max_commits: int = MAX_COMMITS,
    ) -> None:
        self._path = path
        self._wanted = wanted
        self._since = since.encode() if since else None
        self._deadline = time.monotonic() + budget_seconds
        self._max_commits = max_commits
        self._settled: set[int] = set()  # files of which all is known at `since`
        self._spans: list[list[Span]] = []  # by file
        self._diffs: Counter[int] = Counter()  # by file
        self._ranges = 0
        self._waiting: dict[bytes, Waiting] = {}  # by commit
        self._known: dict[bytes, Commit] = {}  # those in the queue
        self._queue: list[tuple[int, bytes]] = []
        self.complete = True  # every line was traced to its commit
        self.reached: int | None = None  # time of the last commit looked at
        self.commits = 0  # looked at

    def run(self) -> dict[str, Written]:
        """By path. Never raises for what is in the repository."""
        found: dict[str, tuple[bytes, int]] = {}
        try:
            with Repository(self._path) as repository:
                self._repository = repository
                self._trees = Trees(repository, self._deadline)
                self._versions = Versions(repository, self._deadline)
                self._begin(found)
                self._walk()
        except (OutOfBudgetError, ObjectError, OSError):
            self.complete = False
        return {path: Written(blob, sorted(self._spans[file])) for path, (blob, file) in found.items()}

    def _begin(self, found: dict[str, tuple[bytes, int]]) -> None:
        """All lines of the wanted files wait at HEAD."""
        head = self._repository.head
        if head is None:
            return
        waiting: Waiting = {}
        for path, blob in self._trees.files(self._repository.commit(head).tree):
            name = fitting(printable_bytes(path))
            if name not in self._wanted or name in found:
                continue
            if len(found) >= MAX_FILES:
                self.complete = False
                break
            file = len(found)
            found[name] = blob, file
            self._spans.append([])
            waiting[path] = [(0, WHOLE, file, 0)]
            if self._wanted[name]:
                self._settled.add(file)
        self._wait(head, waiting)

    def _walk(self) -> None:
        while self._queue:
            if self.commits >= self._max_commits or time.monotonic() > self._deadline:
                raise OutOfBudgetError
            self.commits += 1
            _, commit_id = heapq.heappop(self._queue)
            commit, waiting = self._known.pop(commit_id), self._waiting.pop(commit_id)
            self.reached = commit.time
            if commit_id == self._since:
                waiting = self._unsettled(waiting)
            try:
                self._look(commit, waiting)
            except ObjectError:  # of a damaged or a shallow repository: older lines stay unknown
                self.complete = False

    def _unsettled(self, waiting: Waiting) -> Waiting:
        left = {
            path: [each for each in ranges if each[2] not in self._settled]
            for path, ranges in waiting.items()
        }
        return {path: ranges for path, ranges in left.items() if ranges}

    def _look(self, commit: Commit, waiting: Waiting) -> None:
        """Hand on what the parents have too; the rest was written in this commit. Raises ObjectError."""
        if not waiting:
            return
        if not commit.parents:
            for ranges in waiting.values():
                self._write(ranges, commit.time)
            return
        parents = commit.parents
        trees = [self._commit(parent).tree for parent in parents]
        compared = [self._trees.compare(commit.tree, trees[0])]
        touched = {
            path: waiting.pop(path) for path in (*compared[0].changed, *compared[0].added) if path in waiting
        }
        self._wait(parents[0], waiting)
        for tree in trees[1:] if touched else ():
            compared.append(self._trees.compare(commit.tree, tree))
            if sum(map(len, compared)) > MAX_COMPARED:
                raise OutOfBudgetError
        renames = [Renames(each.removed, self._versions.read) for each in compared]
        for path, ranges in touched.items():
            if time.monotonic() > self._deadline:
                raise OutOfBudgetError
            self._divide(path, ranges, commit.time, parents, compared, renames)
        for parent in parents:
            if parent not in self._waiting:
                self._known.pop(parent, None)

    def _divide(
        self,
        path: bytes,
        ranges: list[Range],
        seconds: int,
        parents: tuple[bytes, ...],
        compared: list[Comparison],
        renames: list[Renames],
    ) -> None:
        """The lines of one file among the parents of a commit and the commit itself."""
        for parent, difference in zip(parents, compared, strict=True):
            if path not in difference:  # the very same file
                self._wait(parent, {path: ranges})
                return
        for parent, difference, renamed in zip(parents, compared, renames, strict=True):
            if path in difference.changed:
                now, before = difference.changed[path]
                old_path = path
            else:
                now = difference.added[path]
                origin = renamed.origin(path, now)
                if origin is None:
                    continue
                old_path, before = origin
            shared = self._shared(now, before, ranges[0][2])
            if shared is None:
                self.complete = False
                return
            self._ranges -= len(ranges)
            handed, ranges = split(ranges, shared)
            self._ranges += len(handed) + len(ranges)
            if self._ranges > MAX_RANGES:
                raise OutOfBudgetError
            if handed:
                self._wait(parent, {old_path: handed})
            if not ranges:
                return
        self._write(ranges, seconds)

    def _shared(self, now: bytes, before: bytes, file: int) -> list[Block] | None:
        """What two versions share; None where that cannot be told. Raises OutOfBudgetError."""
        if now == before:
            return [Block(0, 0, WHOLE)]
        self._diffs[file] += 1
        if self._diffs[file] > MAX_DIFFS:
            return None
        new, old = self._versions.read(now), self._versions.read(before)
        return None if new is None or old is None else line_diff.blocks(new, old)

    def _write(self, ranges: Iterable[Range], seconds: int) -> None:
        for _, lines, file, first in ranges:
            self._spans[file].append(Span(first, lines, seconds))

    def _wait(self, commit_id: bytes, waiting: Waiting) -> None:
        """Let these lines wait at a commit. Raises ObjectError when it is missing."""
        if not waiting:
            return
        there = self._waiting.get(commit_id)
        if there is None:
            commit = self._commit(commit_id)
            self._waiting[commit_id] = waiting
            heapq.heappush(self._queue, (-commit.time, commit_id))
            return
        if len(there) < len(waiting):
            self._waiting[commit_id], there, waiting = waiting, waiting, there
        for path, ranges in waiting.items():
            there.setdefault(path, []).extend(ranges)

    def _commit(self, commit_id: bytes) -> Commit:
        commit = self._known.get(commit_id)
        if commit is None:
            commit = self._known[commit_id] = self._repository.commit(commit_id)
        return commit


def split(ranges: Iterable[Range], shared: list[Block]) -> tuple[list[Range], list[Range]]:
    """The lines that an older version has too, numbered as there; and those that it has not."""
    handed, left = [], []
    starts = [block.new for block in shared]
    for start, lines, file, first in ranges:
        at, end = start, start + lines
        for number in range(max(0, bisect_right(starts, start) - 1), len(shared)):
            new, old, size = shared[number]
            if new >= end:
                break
            begin, stop = max(at, new), min(end, new + size)
            if begin >= stop:
                continue
            if begin > at:
                left.append((at, begin - at, file, first + at - start))
            handed.append((old + begin - new, stop - begin, file, first + begin - start))
            at = stop
        if at < end:
            left.append((at, end - at, file, first + at - start))
    return handed, left
