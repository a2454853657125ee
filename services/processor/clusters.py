"""Near duplicates, online: which of a batch's drafts are kept, now that other texts are stored already.

Two texts that share a band key are near duplicates (minhash.py); a group is a connected component
over shared keys, and of each group one member is kept. Every member's keys are remembered, those
of rejected ones too: so the groups, and what is kept of each, do not depend on the order in which
the texts arrive. Decision record: docs/decisions/0007-near-duplicates.md.
"""

import itertools
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

BANDS = 14
_KEYS = struct.Struct(f"<{BANDS}q")  # as PostgreSQL's bigint, which is signed


@dataclass(frozen=True, slots=True)
class Candidate:
    """A draft, as far as this decision needs it."""

    sha256: bytes
    score: int
    bands: bytes | None  # as minhash.band_keys gives them


@dataclass(frozen=True, slots=True)
class Kept:
    """The one member of a group that is kept."""

    content_id: int  # 0: a draft, not stored yet
    sha256: bytes
    score: int
    live: bool  # some file still holds it


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done, all of it in one transaction. A negative group is one of `new_groups`."""

    kept: dict[bytes, int | None]  # draft → its group; None: too short to have one
    rejected: dict[bytes, bytes]  # draft → what is kept in its place, a draft or stored
    demoted: dict[int, bytes]  # stored content's id → what is kept in its place
    merged: dict[int, int]  # stored group → the stored group that takes it in
    new_groups: tuple[int, ...]  # placeholders −1, −2, …, each to be replaced by an id of the database
    champions: dict[int, bytes]  # group → its kept member, where that is new
    keys: tuple[tuple[int, int], ...]  # (key, group), rows to insert: none of them stored before


def keys_of(bands: bytes) -> tuple[int, ...]:
    """The 14 band keys as signed 64-bit integers."""
    return _KEYS.unpack(bands)


def wanted_keys(candidates: Iterable[Candidate]) -> set[int]:
    """The keys whose groups `decide` must be told."""
    return {key for candidate in candidates if candidate.bands for key in keys_of(candidate.bands)}


def decide(
    candidates: Sequence[Candidate], group_of: Mapping[int, int], kept_of: Mapping[int, Kept]
) -> Decision:
    """Join the candidates and the stored groups into components; of each the best member is kept.

    The best has the highest score, among equals the smallest SHA-256; one that no file holds any
    more loses against any that a file holds. A candidate with the SHA-256 of a kept member takes that
    member's place, and is kept or rejected in its stead. O(keys), apart from the union-find's α.

    Args:
        candidates: each SHA-256 once.
        group_of: stored key → its group, never one that was merged into another.
        kept_of: group → its kept member; a group that is missing here has none.
    """
    forest = Forest()
    keys: dict[int, int] = {}  # key not stored before → the node that brought it
    home: list[int | None] = []  # a node of each candidate's component
    for number, candidate in enumerate(candidates, start=1):
        if candidate.bands is None:
            home.append(None)
            continue
        home.append(-number)
        for key in keys_of(candidate.bands):
            owner = group_of.get(key)
            if owner is None:
                owner = keys.setdefault(key, -number)
            forest.join(-number, owner)
    placeholders = itertools.count(-1, -1)
    name = {root: root if root > 0 else next(placeholders) for root in forest.roots()}
    groups = [None if node is None else name[forest.root(node)] for node in home]
    members = _members(candidates, groups, forest, name, kept_of)
    best = {group: max(rivals, key=_rank) for group, rivals in members.items()}
    drafts = {candidate.sha256 for candidate in candidates}
    placed = list(zip(candidates, groups, strict=True))
    return Decision(
        kept={c.sha256: at for c, at in placed if at is None or best[at].sha256 == c.sha256},
        rejected={
            c.sha256: best[at].sha256 for c, at in placed if at is not None and best[at].sha256 != c.sha256
        },
        demoted={
            rival.content_id: best[group].sha256
            for group, rivals in members.items()
            for rival in rivals
            if rival.content_id and rival is not best[group] and rival.sha256 != best[group].sha256
        },
        merged={node: at for node in forest if node > 0 and (at := name[forest.root(node)]) != node},
        new_groups=tuple(sorted((at for at in members if at < 0), reverse=True)),
        champions={
            at: winner.sha256
            for at, winner in best.items()
            if winner.sha256 in drafts or at not in kept_of or kept_of[at].sha256 != winner.sha256
        },
        keys=tuple((key, name[forest.root(node)]) for key, node in keys.items()),
    )


def _members(
    candidates: Sequence[Candidate],
    groups: Sequence[int | None],
    forest: "Forest",
    name: Mapping[int, int],
    kept_of: Mapping[int, Kept],
) -> dict[int, list[Kept]]:
    """By group, who competes: the kept member of each stored group that went into it, and the drafts."""
    members: dict[int, dict[bytes, Kept]] = {}
    for node in forest:
        if node > 0 and node in kept_of:
            members.setdefault(name[forest.root(node)], {})[kept_of[node].sha256] = kept_of[node]
    for candidate, group in zip(candidates, groups, strict=True):
        if group is not None:
            rivals = members.setdefault(group, {})
            same = rivals.get(candidate.sha256)
            content_id = same.content_id if same else 0
            rivals[candidate.sha256] = Kept(content_id, candidate.sha256, candidate.score, live=True)
    return {group: list(rivals.values()) for group, rivals in members.items()}


def _rank(member: Kept) -> tuple[bool, int, bytes]:
    # The complement of the bytes: of equal scores the smaller address is the greater
    return member.live, member.score, bytes(255 - byte for byte in member.sha256)


class Forest:
    """Union-find over stored groups (their ids, positive) and candidates (−1, −2, …).

    The root of a tree is its oldest stored group, if it has any.
    """

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def __iter__(self) -> Iterator[int]:
        return iter(self._parent)

    def roots(self) -> list[int]:
        return [node for node, above in self._parent.items() if node == above]

    def root(self, node: int) -> int:
        parent = self._parent
        above = parent.setdefault(node, node)
        while above != node:  # halves the path as it climbs
            parent[node] = parent[above]
            node = parent[node]
            above = parent[node]
        return node

    def join(self, one: int, other: int) -> None:
        one, other = self.root(one), self.root(other)
        if one <= 0 or 0 < other < one:
            one, other = other, one
        self._parent[other] = one
