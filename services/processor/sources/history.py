"""Which commit touched each path last, and when: from HEAD backwards, within a budget of time.

A merge touches a path only if it differs from all its parents; of a change that was made on two
branches the later commit counts (as in `git log --full-history --no-merges`).
"""

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from services.processor.sources.git import Commit, Repository
from services.processor.sources.packs import ObjectError
from services.processor.sources.paths import fitting, printable_bytes
from services.processor.sources.trees import OutOfBudgetError, Trees

MAX_COMMITS = 200_000


@dataclass(frozen=True, slots=True)
class Change:
    """The newest commit that touched a path."""

    path: str  # as Found.path
    commit: str
    time: int  # seconds since 1970, when it was committed


class History:
    """Iterate once: the newest Change of each path, newest first. Afterwards `complete` and `commits` hold.

    Args:
        path: of a working tree or a bare repository.
        since: a commit up to which all is known: only what came after it is told. One that HEAD does
            not descend from is as good as none.
        budget_seconds: after so long it stops; what it told is right, of the other paths it knows nothing.
        max_commits: the same for the number of commits looked at.
    """

    def __init__(
        self,
        path: Path,
        since: str | None = None,
        budget_seconds: float = 20.0,
        max_commits: int = MAX_COMMITS,
    ) -> None:
        self._path = path
        self._since = since.encode() if since else None
        self._deadline = time.monotonic() + budget_seconds
        self._max_commits = max_commits
        self.complete = False  # every path's newest commit was told, as far as the objects are there
        self.commits = 0  # looked at

    def __iter__(self) -> Iterator[Change]:
        """Never raises for what is in the repository; one that is gone has no changes."""
        try:
            with Repository(self._path) as repository:
                yield from self._changes(Trees(repository, self._deadline))
                self.complete = True
        except (OutOfBudgetError, ObjectError, OSError):
            return

    def _changes(self, trees: Trees) -> Iterator[Change]:
        repository = trees.repository
        if repository.head is None:
            return
        wanted = _Wanted(trees, repository.commit(repository.head).tree if self._since is None else None)
        for commit_id, commit in _newest_first(repository, self._since):
            if self.commits >= self._max_commits or time.monotonic() > self._deadline:
                raise OutOfBudgetError
            self.commits += 1
            parents = [_commit(repository, parent) for parent in commit.parents]
            if None in parents:  # the end of a shallow clone: what it holds is older than can be told
                continue
            for path in trees.touched(commit.tree, [parent.tree for parent in parents if parent]):
                if wanted.take(path):
                    yield Change(fitting(printable_bytes(path)), commit_id.decode(), commit.time)
            if wanted.is_empty:
                return


class _Wanted:
    """The paths whose newest commit is not known yet, by their hashes: 8 bytes a path and the set's own."""

    def __init__(self, trees: Trees, head: bytes | None) -> None:
        """`head`: the tree whose paths are wanted; None: any path, once."""
        self._left = {hash(path) for path in trees.touched(head, [])} if head else None
        self._taken: set[int] = set()

    @property
    def is_empty(self) -> bool:
        return self._left is not None and not self._left

    def take(self, path: bytes) -> bool:
        """Whether this path was wanted until now."""
        key = hash(path)
        if self._left is not None:
            if key not in self._left:
                return False
            self._left.remove(key)
            return True
        if key in self._taken:
            return False
        self._taken.add(key)
        return True


def _newest_first(repository: Repository, since: bytes | None) -> Iterator[tuple[bytes, Commit]]:
    """The commits that HEAD descends from and `since` does not, by time.

    Both are followed in step; the walk ends when all that is left descends into `since`.
    """
    queue: list[tuple[int, bytes, Commit]] = []
    known: dict[bytes, bool] = {}  # commit → whether `since` has it
    waiting = 0  # commits in the queue that `since` does not have

    def enter(commit_id: bytes, *, is_known: bool) -> None:
        nonlocal waiting
        if commit_id in known:
            if is_known and not known[commit_id]:
                known[commit_id] = True
                waiting -= commit_id in queued
            return
        commit = _commit(repository, commit_id)
        if commit is not None:
            known[commit_id] = is_known
            queued.add(commit_id)
            waiting += not is_known
            heapq.heappush(queue, (-commit.time, commit_id, commit))

    queued: set[bytes] = set()
    if since is not None:
        enter(since, is_known=True)
    if repository.head is not None:
        enter(repository.head, is_known=False)
    while waiting:
        _, commit_id, commit = heapq.heappop(queue)
        queued.remove(commit_id)
        is_known = known[commit_id]
        if not is_known:
            waiting -= 1
            yield commit_id, commit
        for parent in commit.parents:
            enter(parent, is_known=is_known)


def _commit(repository: Repository, commit_id: bytes) -> Commit | None:
    try:
        return repository.commit(commit_id)
    except ObjectError:
        return None
