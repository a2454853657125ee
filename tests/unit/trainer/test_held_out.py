"""Held-out sets over many rounds: nothing judged is trained on, nothing waits for ever."""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.core.models import ContentRole
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.source import Spans
from services.trainer.selection import held_out
from services.trainer.selection.choice import Candidate, Choice, Past, choose
from services.trainer.selection.held_out import LATER, train_through

RECIPE = Recipe(name="test", base_model="./model", held_out_min=16, validation_min=4)
LINE = "0123456789\n"
DAY = 86_400
LONGEST_WAIT = 20  # rounds: of at most 100 later changes three quarters wait once more, and 0.75^17 × 100 < 1
seeds = st.integers(0, 10_000)


@dataclass
class Content:
    """A text of as many lines as it has units, each line a unit."""

    candidate: Candidate
    line_times: list[tuple[int, int, int]]
    fingerprints: list[int]
    arrived: int  # round

    @property
    def text(self) -> str:
        return LINE * len(self.fingerprints)

    def units(self, spans: Spans | None) -> set[int]:
        """The fingerprints of the lines that any of the bytes is of."""
        spans = ((0, len(self.text)),) if spans is None else spans
        lines = {byte // len(LINE) for start, end in spans for byte in range(start, end)}
        return {self.fingerprints[line] for line in lines}


@dataclass
class Life:
    """A track from round to round, as the ledger leads it, without a database."""

    chance: random.Random
    recipe: Recipe = RECIPE
    size: int = 1000
    dated_share: float = 0.9
    contents: dict[int, Content] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)  # learned, or had by a failed round
    roles: dict[int, set[ContentRole]] = field(default_factory=dict)
    trained_units: set[int] = field(default_factory=set)
    trained: set[int] = field(default_factory=set)  # content ids
    past: Past = field(default_factory=Past)
    round_number: int = 0

    def arrive(self, count: int, since: int, until: int) -> None:
        """So many contents, last changed between these days; one in five is a copy of an older cluster."""
        for _ in range(count):
            number = len(self.contents) + 1
            known = sorted({each.candidate.cluster_id for each in self.contents.values()})
            copies = known and self.chance.random() < 0.2
            changed = self.chance.randint(since * DAY, until * DAY)
            is_dated = self.chance.random() < self.dated_share
            units = [self.chance.randrange(3000) for _ in range(self.chance.randint(1, 6))]
            times = [
                (line, line, changed if line == 1 else self.chance.randint(0, changed))
                for line in range(1, len(units) + 1)
            ]
            candidate = Candidate(
                number,
                hashlib.sha256(str(number).encode()).digest(),
                self.chance.choice(known) if copies else number,
                self.chance.randint(70, 100),
                changed_at=changed if is_dated else None,
                has_line_times=is_dated,
            )
            self.contents[number] = Content(candidate, times, units, self.round_number)

    def merge(self) -> None:
        """Two clusters turn out to be one."""
        into, gone = self.chance.sample(sorted({c.candidate.cluster_id for c in self.contents.values()}), 2)
        for content in self.contents.values():
            if content.candidate.cluster_id == gone:
                content.candidate = replace(content.candidate, cluster_id=into)
        self.roles.setdefault(into, set()).update(self.roles.pop(gone, ()))
        anchors = tuple(self.contents[each.content_id].candidate for each in self.past.anchors)
        self.past = replace(self.past, anchors=anchors)

    def round(self, state: str = "promoted") -> Choice:
        waiting = [
            each.candidate for each in self.contents.values() if each.candidate.content_id not in self.gone
        ]
        choice = self._judged(choose(waiting, self.roles, self.recipe, self.size, (), self.past))
        learned = {each.content_id for each in choice.of(ContentRole.TRAIN)}
        self.trained |= learned
        self.trained_units |= {unit for each in learned for unit in self.contents[each].fingerprints}
        self.gone |= learned if state != "refused" else set()
        for role, candidate in choice.contents:
            self.roles.setdefault(candidate.cluster_id, set()).add(role)
        for cluster, role in choice.newly_set_aside.items():
            self.roles.setdefault(cluster, set()).add(role)
        anchors = tuple(self.contents[each].candidate for each in sorted(choice.anchors))
        self.past = Past(choice.through, anchors)
        self.round_number += 1
        return choice

    def _judged(self, choice: Choice) -> Choice:
        """As the ledger does it, with its queries in Python."""
        training = {
            unit
            for each in choice.of(ContentRole.TRAIN)
            for unit in self.contents[each.content_id].fingerprints
        } | self.trained_units
        judged, leaked = {}, set()
        for role, candidate in choice.contents:
            if role is ContentRole.TRAIN:
                continue
            content = self.contents[candidate.content_id]
            before: Spans = ((0, len(content.text)),)
            is_anchor = candidate.content_id in choice.anchors
            if choice.kind == "time" and role is ContentRole.HELD_OUT and not is_anchor:
                assert choice.through is not None
                before = held_out.later_lines(content.text, content.line_times, choice.through)
            leaks = [
                (line * len(LINE), (line + 1) * len(LINE))
                for line, unit in enumerate(content.fingerprints)
                if unit in training
            ]
            judged[candidate.content_id] = held_out.without(before, leaks)
            leaked |= {candidate.content_id} if before and not judged[candidate.content_id] else set()
        return choice.counting(judged, leaked)


def any_life(seed: int, split: str = "auto") -> Iterator[tuple[Life, Choice]]:
    """A life of a dozen rounds, however they end, while contents arrive, new ones and old ones, and merge."""
    chance = random.Random(seed)
    recipe = RECIPE.model_copy(update={"split": split})
    life = Life(chance, recipe, chance.choice([20, 200]), dated_share=chance.choice([0.2, 0.8, 1.0]))
    life.arrive(chance.randint(20, 250), 0, 100)
    for number in range(12):
        yield life, life.round(chance.choice(["promoted", "promoted", "refused", "failed"]))
        life.arrive(chance.randint(0, 60), chance.choice([0, 90 + number]), 110 + number)
        if chance.random() < 0.3:
            life.merge()


@settings(max_examples=15)
@given(seeds, st.sampled_from(["auto", "time", "cluster"]))
def test_nothing_judged_was_ever_trained_on(seed: int, split: str) -> None:
    """No cluster, no content and no unit of what a round is judged by, in this round or an earlier one."""
    for life, choice in any_life(seed, split):
        trained = {life.contents[each].candidate.cluster_id for each in life.trained}
        for role, candidate in choice.contents:
            if role is not ContentRole.TRAIN:
                assert candidate.cluster_id not in trained
                spans = choice.judged[candidate.content_id]
                assert spans
                assert not life.contents[candidate.content_id].units(spans) & life.trained_units


@settings(max_examples=15)
@given(seeds)
def test_time_never_moves_backward(seed: int) -> None:
    """Nor is anything trained on that changed after it."""
    before = None
    for _, choice in any_life(seed):
        assert before is None or (choice.through is not None and choice.through >= before)
        before = choice.through
        for candidate in choice.of(ContentRole.TRAIN):
            assert candidate.changed_at is None or candidate.changed_at <= (choice.through or 0)


@settings(max_examples=15)
@given(seeds)
def test_later_lines_alone_count_but_for_anchors(seed: int) -> None:
    """By time, whatever else is judged was written after everything that the track trained on."""
    for life, choice in any_life(seed, "time"):
        if choice.kind == "cluster":
            continue
        for candidate in choice.of(ContentRole.HELD_OUT):
            if candidate.content_id in choice.anchors:
                continue
            for start, end in choice.judged[candidate.content_id]:
                lines = range(start // len(LINE), end // len(LINE))
                times = life.contents[candidate.content_id].line_times
                assert all(times[line][2] > (choice.through or 0) for line in lines)


@settings(max_examples=15)
@given(seeds)
def test_every_round_is_judged_by_the_anchors(seed: int) -> None:
    """Chosen once; less only what merged with code that is trained on, or was seen elsewhere since."""
    anchors: frozenset[int] = frozenset()
    for life, choice in any_life(seed):
        pure = {
            a for a in anchors if life.roles[life.contents[a].candidate.cluster_id] == {ContentRole.HELD_OUT}
        }
        judged = {each.content_id for each in choice.of(ContentRole.HELD_OUT)}
        if pure:
            assert choice.anchors <= anchors
            left = {a for a in pure if choice.judged.get(a)}
            assert left <= judged
        anchors = choice.anchors


@settings(max_examples=15)
@given(seeds, st.sampled_from(["auto", "time"]))
def test_nothing_waits_for_ever(seed: int, split: str) -> None:
    """While old and new contents keep coming, each is trained on or set aside within some rounds."""
    chance = random.Random(seed)
    life = Life(chance, RECIPE.model_copy(update={"split": split}), dated_share=chance.choice([0.5, 1.0]))
    life.arrive(chance.choice([60, 300]), 0, 100)
    oldest_only = chance.random() < 0.5  # whatever comes later is older than what waits
    for number in range(45):
        life.round()
        until = 50 if oldest_only else 101 + number
        life.arrive(chance.randint(0, 25), 0 if oldest_only else 95 + number, until)
    for content in life.contents.values():
        if life.round_number - content.arrived > LONGEST_WAIT:
            its = life.roles.get(content.candidate.cluster_id, set())
            is_aside = bool(its & set(held_out.SET_ASIDE))
            assert content.candidate.content_id in life.trained or is_aside, content


def test_most_of_what_is_new_is_trained_on() -> None:
    """Over twenty rounds about the recipe's shares are set aside, not all that is newest."""
    life = Life(random.Random(1), RECIPE.model_copy(update={"split": "time"}), dated_share=1.0)
    life.arrive(400, 0, 100)
    kinds = []
    for number in range(20):
        kinds.append(life.round().kind)
        life.arrive(100, 101 + number, 102 + number)
    aside = sum(bool(roles & set(held_out.SET_ASIDE)) for roles in life.roles.values())
    assert kinds.count("time") >= 16
    assert 0.04 < aside / len(life.roles) < 0.12


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200), st.none() | st.integers(0, 1000))
def test_at_most_a_fifth_is_later(changes: list[int], before: int | None) -> None:
    """And of what was later before, at least the oldest quarter no longer is."""
    through = train_through(changes, before)
    assert sum(change > through for change in changes) <= LATER * len(changes)
    if before is not None:
        waiting = [change for change in changes if change > before]
        assert sum(change > through for change in waiting) <= 0.75 * len(waiting)


def dated(count: int, changed_at: int | None = None) -> list[Candidate]:
    """A cluster each, changed a second after one another, or all at once."""
    return [
        Candidate(
            n, hashlib.sha256(str(n).encode()).digest(), n, 90,
            changed_at=n if changed_at is None else changed_at, has_line_times=True,
        )
        for n in range(1, count + 1)
    ]  # fmt: skip


def test_by_time_where_half_is_known() -> None:
    """auto: by time from half of the clusters on."""
    candidates = dated(200)
    unknown = [replace(each, changed_at=None, has_line_times=False) for each in candidates[:101]]
    assert choose(candidates, {}, RECIPE, 1000).kind == "time"
    assert choose([*unknown[:100], *candidates[100:]], {}, RECIPE, 1000).kind == "time"
    assert choose([*unknown, *candidates[101:]], {}, RECIPE, 1000).kind == "cluster"


@pytest.mark.parametrize(
    "candidates",
    [dated(200, changed_at=7), [replace(each, has_line_times=False) for each in dated(200)], dated(20)],
    ids=["one commit", "no times of lines", "too few are later"],
)
def test_by_cluster_where_nothing_can_be_later(candidates: list[Candidate]) -> None:
    """Even when the recipe says time."""
    choice = choose(candidates, {}, RECIPE.model_copy(update={"split": "time"}), 1000)
    assert choice.kind == "cluster"
    assert choice.of(ContentRole.HELD_OUT)
    assert "at random" in choice.held_out.words


def test_after_a_round_by_cluster_only_newer_lines_are_later() -> None:
    """It trained on the newest there was: that is the time from then on."""
    choice = choose(dated(200), {}, RECIPE.model_copy(update={"split": "cluster"}), 1000)
    assert choice.through == max(each.changed_at or 0 for each in choice.of(ContentRole.TRAIN))


@settings(max_examples=12)
@given(st.integers(5, 40), st.sampled_from(["time", "cluster"]))
def test_no_more_are_judged_than_the_recipe_says(most: int, split: str) -> None:
    """The anchors first, then the newest."""
    recipe = RECIPE.model_copy(update={"held_out_max": most, "held_out_share": 0.15, "split": split})
    first = choose(dated(500), {}, recipe, 1000)
    roles = {each.cluster_id: {role} for role, each in first.contents} | {
        cluster: {role} for cluster, role in first.newly_set_aside.items()
    }
    past = Past(first.through, tuple(each for each in dated(500) if each.content_id in first.anchors))
    choice = choose(dated(500), roles, recipe, 1000, (), past)
    judged = choice.of(ContentRole.HELD_OUT)
    others = [each for each in judged if each.content_id not in choice.anchors]
    assert len(judged) <= most
    assert choice.anchors == first.anchors
    assert len(choice.anchors) == most // 2
    assert {each.content_id for each in judged} >= choice.anchors
    if split == "cluster":
        left = [cluster for cluster, its in roles.items() if ContentRole.HELD_OUT in its]
        assert min(each.content_id for each in others) >= sorted(left)[-most]
    assert len(choice.of(ContentRole.VALIDATION)) <= most


def test_the_version_names_what_is_judged() -> None:
    """The same contents and bytes have the same version; one byte less is another set."""
    choice = choose(dated(200), {}, RECIPE, 1000)
    (first, *_) = choice.of(ContentRole.HELD_OUT)
    narrower = choice.counting({first.content_id: ((0, 5),)}, ())
    assert choice.held_out.version == choose(reversed(dated(200)), {}, RECIPE, 1000).held_out.version
    assert narrower.held_out.version != choice.held_out.version
    assert narrower.hash != choice.hash


def test_what_has_nothing_left_is_left_out_and_counted() -> None:
    """Because it is trained on elsewhere; a text without later lines is not counted so."""
    choice = choose(dated(200), {}, RECIPE, 1000)
    first, second, *_ = choice.of(ContentRole.HELD_OUT)
    left = choice.counting({first.content_id: (), second.content_id: ()}, {first.content_id})
    assert len(left.of(ContentRole.HELD_OUT)) == len(choice.of(ContentRole.HELD_OUT)) - 2
    assert left.held_out.leaked == 1
    assert "1 left out" in left.held_out.words


lines = st.lists(st.sampled_from(["", "a", "é", "\r", "long line", "  x"]), max_size=12)
spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8)


@given(lines, st.lists(st.booleans(), min_size=13, max_size=13))
def test_later_lines_are_those_lines(of_text: list[str], is_later: list[bool]) -> None:
    """With their line feeds, to the byte."""
    text = "\n".join(of_text)
    parts = [f"{line}\n" for line in text.split("\n")]
    parts[-1] = parts[-1].removesuffix("\n")
    times = [(number, number, 10 if is_later[number] else 5) for number in range(1, len(parts) + 1)]
    found = held_out.later_lines(text, times, 5)
    wanted = "".join(part for number, part in enumerate(parts, 1) if is_later[number])
    assert b"".join(text.encode()[start:end] for start, end in found).decode() == wanted


@given(spans, spans)
def test_spans_are_sets_of_bytes(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    """Union and difference, in order and without neighbours that touch."""

    def as_set(of: list[tuple[int, int]]) -> set[int]:
        return {byte for start, end in of for byte in range(start, end)}

    together = held_out.union(some)
    left = held_out.without(together, others)
    assert as_set(list(together)) == as_set(some)
    assert as_set(list(left)) == as_set(some) - as_set(others)
    for found in (together, left):
        assert all(start < end for start, end in found)
        assert all(one[1] < other[0] for one, other in pairwise(found))
