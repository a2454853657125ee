"""Compares the trees of commits, skipping what they share, within a budget of time."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from services.processor.sources.git import Repository, TreeEntry
from services.processor.thresholds import MAX_DEPTH

MAX_PATHS = 1_000_000
MAX_COMPARED = 200_000  # paths in which two trees may differ for them to be compared
CACHED_ENTRIES = 200_000  # of trees: neighbouring commits share nearly all of theirs


class OutOfBudgetError(Exception):
    """The time is up, or as much was looked at as may be."""


@dataclass(slots=True)
class Comparison:
    """The files in which a tree differs from another one: path → id of the object."""

    changed: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict)  # now and before
    added: dict[bytes, bytes] = field(default_factory=dict)
    removed: dict[bytes, bytes] = field(default_factory=dict)

    def __contains__(self, path: bytes) -> bool:
        """Whether the tree has a file of this path, and another than the other tree."""
        return path in self.changed or path in self.added

    def __len__(self) -> int:
        return len(self.changed) + len(self.added) + len(self.removed)


class Trees:
    """Compares trees, skipping what they share."""

    def __init__(self, repository: Repository, deadline: float) -> None:
        self.repository = repository
        self._deadline = deadline  # monotonic seconds
        self._cache: dict[bytes, frozenset[TreeEntry]] = {}
        self._cached = 0  # entries
        self._met = 0  # paths, over all comparisons

    def touched(
        self, tree: bytes, parents: list[bytes], path: bytes = b"", depth: int = 0
    ) -> Iterator[bytes]:
        """Paths of the files of `tree` that none of the parents' trees has like that.

        Raises ObjectError for a missing tree, OutOfBudgetError.
        """
        if tree in parents:
            return
        if depth > MAX_DEPTH:
            return
        known = [self._entries(parent) for parent in parents]
        changed = self._entries(tree).difference(*known)
        for entry in changed:
            if not entry.is_directory:
                self._count()
                yield path + entry.name
                continue
            before = (
                [
                    old.id
                    for entries in known
                    for old in entries
                    if old.name == entry.name and old.is_directory
                ]
                if known
                else []
            )
            yield from self.touched(entry.id, before, path + entry.name + b"/", depth + 1)

    def files(self, tree: bytes, path: bytes = b"", depth: int = 0) -> Iterator[tuple[bytes, bytes]]:
        """Every file of a tree: path and id. Raises ObjectError for a missing tree, OutOfBudgetError."""
        if depth > MAX_DEPTH:
            return
        for entry in self._entries(tree):
            if entry.is_directory:
                yield from self.files(entry.id, path + entry.name + b"/", depth + 1)
            else:
                self._count()
                yield path + entry.name, entry.id

    def compare(self, tree: bytes, other: bytes) -> Comparison:
        """What `tree` has and `other` has not, or not like that. Raises as `files`."""
        found = Comparison()
        self._compare(tree, other, b"", 0, found)
        return found

    def _compare(self, tree: bytes, other: bytes, path: bytes, depth: int, found: Comparison) -> None:
        if tree == other or depth > MAX_DEPTH:
            return
        now, before = self._entries(tree), self._entries(other)
        gone = {(entry.name, entry.is_directory): entry for entry in before - now}
        for entry in now - before:
            was = gone.pop((entry.name, entry.is_directory), None)
            name = path + entry.name
            if entry.is_directory:
                if was:
                    self._compare(entry.id, was.id, name + b"/", depth + 1, found)
                else:
                    found.added.update(self._all(entry.id, name + b"/", depth + 1))
            elif was is None:
                found.added[name] = entry.id
            elif was.id != entry.id:  # else only its mode changed
                found.changed[name] = entry.id, was.id
        for entry in gone.values():
            name = path + entry.name
            if entry.is_directory:
                found.removed.update(self._all(entry.id, name + b"/", depth + 1))
            else:
                found.removed[name] = entry.id
        self._met += 1
        if len(found) > MAX_COMPARED:
            raise OutOfBudgetError

    def _all(self, tree: bytes, path: bytes, depth: int) -> dict[bytes, bytes]:
        return dict(itertools.islice(self.files(tree, path, depth), MAX_COMPARED + 1))

    def _count(self) -> None:
        """Raises OutOfBudgetError now and then: when the time is up, or after too many paths."""
        self._met += 1
        if self._met % 1_000 == 0 and (time.monotonic() > self._deadline or self._met > 100 * MAX_PATHS):
            raise OutOfBudgetError

    def _entries(self, tree: bytes) -> frozenset[TreeEntry]:
        entries = self._cache.get(tree)
        if entries is None:
            if time.monotonic() > self._deadline:
                raise OutOfBudgetError
            entries = frozenset(self.repository.tree(tree))
            if self._cached + len(entries) > CACHED_ENTRIES:
                self._cache.clear()
                self._cached = 0
            self._cache[tree] = entries
            self._cached += len(entries)
        return entries
