"""Near-duplicate groups online: one kept of each, whatever the order and the batches."""

import struct
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor import clusters
from services.processor.clusters import Candidate, Kept, decide


def address(number):
    return bytes([number]) * 32


def bands(*shared, own):
    """Keys: the given ones, and for the rest such as no other text has."""
    rest = [1_000_000 + own * clusters.BANDS + n for n in range(clusters.BANDS - len(shared))]
    return struct.pack(f"<{clusters.BANDS}q", *shared, *rest)


def candidate(number, *shared, score=50):
    return Candidate(address(number), score, bands(*shared, own=number))


@dataclass
class Memory:
    """The tables as the store keeps them, in dictionaries."""

    group_of: dict = field(default_factory=dict)  # key → group
    kept_of: dict = field(default_factory=dict)  # group → Kept
    contents: dict = field(default_factory=dict)  # sha256 → id
    live: set = field(default_factory=set)
    scores: dict = field(default_factory=dict)
    groups: int = 0

    def store(self, batch):
        wanted = clusters.wanted_keys(batch)
        group_of = {key: group for key, group in self.group_of.items() if key in wanted}
        decision = decide(batch, group_of, {at: self.kept_of[at] for at in group_of.values()})
        real = {new: self.groups + number for number, new in enumerate(decision.new_groups, start=1)}
        self.groups += len(real)
        self.group_of = {key: decision.merged.get(at, at) for key, at in self.group_of.items()}
        for absorbed in decision.merged:
            del self.kept_of[absorbed]
        self.scores |= {c.sha256: c.score for c in batch}
        for sha256 in decision.kept:
            self.contents.setdefault(sha256, len(self.contents) + 1)
            self.live.add(sha256)
        ids = {number: sha256 for sha256, number in self.contents.items()}
        self.live -= {ids[number] for number in decision.demoted}
        for group, sha256 in decision.champions.items():
            self.kept_of[real.get(group, group)] = Kept(
                self.contents[sha256], sha256, self.scores[sha256], live=True
            )
        for key, group in decision.keys:
            assert key not in self.group_of
            self.group_of[key] = real.get(group, group)
        return decision

    def components(self):
        """The groups as sets of keys, without their numbers."""
        keys = {}
        for key, group in self.group_of.items():
            keys.setdefault(group, set()).add(key)
        return {frozenset(group) for group in keys.values()}


def test_alone_is_kept():
    """A text without a near duplicate is kept, in a new group with all its keys."""
    decision = decide([candidate(1)], {}, {})
    assert decision.kept == {address(1): -1}
    assert decision.new_groups == (-1,)
    assert decision.champions == {-1: address(1)}
    assert [group for _, group in decision.keys] == [-1] * 14


def test_too_short_is_kept_without_group():
    """A text without keys has no near duplicates."""
    decision = decide([Candidate(address(1), 50, None)], {}, {})
    assert decision.kept == {address(1): None}
    assert not decision.new_groups
    assert not decision.keys


def test_better_of_two_drafts_is_kept():
    """Of two that share a key the higher score is kept, the other refers to it."""
    decision = decide([candidate(1, 7, score=60), candidate(2, 7, score=70)], {}, {})
    assert decision.kept == {address(2): -1}
    assert decision.rejected == {address(1): address(2)}


def test_equal_scores_keep_the_smaller_address():
    """Ties do not depend on who comes first."""
    assert decide([candidate(2, 7), candidate(1, 7)], {}, {}).kept == {address(1): -1}


def test_worse_than_stored_is_rejected():
    """A stored text that is better stays, and the draft's keys join its group."""
    decision = decide([candidate(2, 7, score=40)], {7: 3}, {3: Kept(9, address(1), 50, live=True)})
    assert decision.rejected == {address(2): address(1)}
    assert not decision.demoted
    assert not decision.champions
    assert [group for _, group in decision.keys] == [3] * 13


def test_better_than_stored_demotes_it():
    """A better text takes the place of the stored one."""
    decision = decide([candidate(2, 7, score=60)], {7: 3}, {3: Kept(9, address(1), 50, live=True)})
    assert decision.kept == {address(2): 3}
    assert decision.demoted == {9: address(2)}
    assert decision.champions == {3: address(2)}


def test_what_no_file_holds_loses():
    """A text that is gone from every source does not keep others out."""
    decision = decide([candidate(2, 7, score=10)], {7: 3}, {3: Kept(9, address(1), 99, live=False)})
    assert decision.kept == {address(2): 3}
    assert decision.demoted == {9: address(2)}


def test_draft_between_two_groups_merges_them():
    """The older group takes the younger in, and one of all members is kept."""
    stored = {3: Kept(9, address(1), 50, live=True), 5: Kept(11, address(2), 60, live=True)}
    decision = decide([candidate(3, 7, 8, score=40)], {7: 3, 8: 5}, stored)
    assert decision.merged == {5: 3}
    assert decision.rejected == {address(3): address(2)}
    assert decision.demoted == {9: address(2)}
    assert decision.champions == {3: address(2)}


def test_the_stored_text_itself_is_not_demoted():
    """A draft that is the kept text, with a new score, stands for it."""
    decision = decide([candidate(1, 7, score=20)], {7: 3}, {3: Kept(9, address(1), 50, live=True)})
    assert decision.kept == {address(1): 3}
    assert not decision.demoted


def test_the_stored_text_itself_can_lose():
    """With its new score it loses against another draft: rejected as a draft, demoted as a content."""
    batch = [candidate(1, 7, score=20), candidate(2, 7, score=30)]
    decision = decide(batch, {7: 3}, {3: Kept(9, address(1), 50, live=True)})
    assert decision.rejected == {address(1): address(2)}
    assert decision.demoted == {9: address(2)}


def test_a_group_without_kept_member_takes_the_draft():
    """Nothing stored stands for the group any more."""
    assert decide([candidate(1, 7)], {7: 3}, {}).kept == {address(1): 3}


@pytest.mark.parametrize("key", [-(2**63), -1, 0, 2**63 - 1])
def test_keys_are_signed(key):
    """A key fits PostgreSQL's bigint."""
    assert clusters.keys_of(bands(key, own=1))[0] == key


FILES = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.integers(0, 12), max_size=3, unique=True)),
    min_size=1,
    max_size=14,
)


@given(FILES, st.data())
def test_order_and_batches_do_not_matter(files, data):
    """Any arrival order, cut into any batches, ends with the same kept texts and the same groups."""
    all_files = [candidate(n, *shared, score=score) for n, (score, shared) in enumerate(files, start=1)]
    at_once = Memory()
    at_once.store(all_files)
    arriving = data.draw(st.permutations(all_files))
    cuts = data.draw(st.sets(st.integers(1, len(files))))
    piecemeal, begun = Memory(), 0
    for cut in sorted(cuts | {len(files)}):
        piecemeal.store(arriving[begun:cut])
        begun = cut
    assert piecemeal.live == at_once.live
    assert piecemeal.components() == at_once.components()


@given(FILES)
def test_one_of_each_component_is_kept(files):
    """As many texts are kept as there are groups, and each is the best of its group."""
    all_files = [candidate(n, *shared, score=score) for n, (score, shared) in enumerate(files, start=1)]
    memory = Memory()
    decision = memory.store(all_files)
    assert len(memory.live) == len(memory.components())
    by_address = {c.sha256: c for c in all_files}
    for loser, winner in decision.rejected.items():
        assert by_address[winner].score >= by_address[loser].score


@given(FILES)
def test_every_draft_is_kept_or_rejected(files):
    """No draft is forgotten and none has two fates."""
    all_files = [candidate(n, *shared, score=score) for n, (score, shared) in enumerate(files, start=1)]
    decision = decide(all_files, {}, {})
    assert {c.sha256 for c in all_files} == decision.kept.keys() | decision.rejected.keys()
    assert not decision.kept.keys() & decision.rejected.keys()
