"""A Merkle tree over lines: one digest for all of them, a short proof for each. RFC 9162, section 2.1."""

import hashlib
from collections.abc import Sequence

LEAF, NODE = b"\x00", b"\x01"  # told apart, or a pair of digests could pass for a line


class Tree:
    """Takes lines one after another and keeps one digest for each bit of their number."""

    def __init__(self) -> None:
        self.size = 0
        self._complete: list[bytes] = []  # digests of complete subtrees, the largest first

    def add(self, line: bytes) -> None:
        digest = leaf(line)
        pairs = self.size
        while pairs & 1:
            digest = _node(self._complete.pop(), digest)
            pairs >>= 1
        self._complete.append(digest)
        self.size += 1

    @property
    def root(self) -> bytes:
        """32 bytes; of no line at all, the digest of nothing."""
        if not self._complete:
            return hashlib.sha256().digest()
        digest = self._complete[-1]
        for left in reversed(self._complete[:-1]):
            digest = _node(left, digest)
        return digest


def leaf(line: bytes) -> bytes:
    """The digest of one line."""
    return hashlib.sha256(LEAF + line).digest()


def proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The digests beside the way from a line's leaf up to the root, the nearest first (2.1.3.1)."""
    beside = []
    level = list(leaves)
    while len(level) > 1:
        if (neighbour := index ^ 1) < len(level):
            beside.append(level[neighbour])
        level = [
            _node(*level[at : at + 2]) if at + 1 < len(level) else level[at] for at in range(0, len(level), 2)
        ]
        index //= 2
    return beside


def proven_root(line: bytes, index: int, size: int, beside: Sequence[bytes]) -> bytes | None:
    """The root of a tree of `size` lines in which this is the line `index`, from 0; None: no such proof.

    The line is proven when this is the root that one trusts (2.1.3.2).
    """
    if not 0 <= index < size:
        return None
    digest, last, rest = leaf(line), size - 1, list(beside)
    while last:
        if index ^ 1 <= last:
            if not rest:
                return None
            neighbour = rest.pop(0)
            digest = _node(neighbour, digest) if index & 1 else _node(digest, neighbour)
        index, last = index >> 1, last >> 1
    return None if rest else digest


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(NODE + left + right).digest()
