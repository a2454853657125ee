"""The tree of RFC 9162: its root by the definition, proofs that hold for one line and no other."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.receipts import merkle

LINES = st.lists(st.binary(max_size=12), min_size=1, max_size=40, unique=True)


def defined(lines: list[bytes]) -> bytes:
    """MTH of section 2.1.1, word by word."""
    if not lines:
        return hashlib.sha256().digest()
    if len(lines) == 1:
        return hashlib.sha256(b"\x00" + lines[0]).digest()
    split = 1
    while 2 * split < len(lines):
        split *= 2
    return hashlib.sha256(b"\x01" + defined(lines[:split]) + defined(lines[split:])).digest()


def root_of(lines: list[bytes]) -> bytes:
    tree = merkle.Tree()
    for line in lines:
        tree.add(line)
    return tree.root


@given(st.lists(st.binary(max_size=12), max_size=70))
def test_the_root_is_the_one_of_the_definition(lines: list[bytes]) -> None:
    assert root_of(lines) == defined(lines)


@given(LINES)
def test_every_line_is_proven(lines: list[bytes]) -> None:
    leaves = [merkle.leaf(line) for line in lines]
    for index, line in enumerate(lines):
        beside = merkle.proof(leaves, index)
        assert merkle.proven_root(line, index, len(lines), beside) == root_of(lines)


@given(LINES, st.data())
def test_another_line_or_place_is_not_proven(lines: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(lines) - 1))
    beside = merkle.proof([merkle.leaf(line) for line in lines], index)
    root = root_of(lines)
    assert merkle.proven_root(lines[index] + b"!", index, len(lines), beside) != root
    assert merkle.proven_root(lines[index], index, len(lines), [*beside, root]) is None
    assert merkle.proven_root(lines[index], len(lines), len(lines), beside) is None
    if beside:
        assert merkle.proven_root(lines[index], index ^ 1, len(lines), beside) != root
        assert merkle.proven_root(lines[index], index, len(lines), beside[:-1]) is None


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_a_pair_of_digests_is_no_line(size: int) -> None:
    """Leaves and nodes are hashed apart (second-preimage resistance, section 2.1.1)."""
    lines = [bytes([each]) for each in range(size)]
    forged = merkle.leaf(lines[0]) + merkle.leaf(lines[-1])
    assert root_of([forged]) != root_of([lines[0], lines[-1]])
