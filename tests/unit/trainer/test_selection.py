"""The choice of a round's snapshot."""

import hashlib
import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.models import ContentRole
from services.trainer.recipes.recipe import Recipe
from services.trainer.selection.choice import Candidate, Choice, choose
from services.trainer.selection.held_out import MOST_SET_ASIDE
from services.trainer.selection.shares import within_shares

RECIPE = Recipe(name="test", base_model="./model")
candidates = st.lists(
    st.builds(
        lambda number, cluster, score, language: Candidate(
            number, hashlib.sha256(bytes([number])).digest(), cluster, score, language
        ),
        st.integers(0, 255),
        st.integers(0, 60),
        st.integers(0, 100),
        st.sampled_from(["python", "go", "rust", "c"]),
    ),
    unique_by=lambda candidate: candidate.content_id,
    max_size=120,
)


@given(candidates, st.integers(1, 200))
def test_no_cluster_is_divided(given_candidates: list[Candidate], size: int) -> None:
    """Near-duplicates are all trained on, or all held out."""
    choice = choose(given_candidates, {}, RECIPE, size)
    roles: dict[int, set[ContentRole]] = {}
    for role, candidate in choice.contents:
        roles.setdefault(candidate.cluster_id, set()).add(role)
    assert all(len(of_cluster) == 1 for of_cluster in roles.values())


@given(candidates, candidates)
def test_what_is_held_out_stays_held_out(first: list[Candidate], more: list[Candidate]) -> None:
    """A later round trains on no cluster that an earlier one set aside, and sets aside none it trained on."""
    before = choose(first, {}, RECIPE, 1000)
    known = {candidate.content_id for candidate in first}
    later = [*first, *(candidate for candidate in more if candidate.content_id not in known)]
    after = choose(later, roles_of(before), RECIPE, 1000)
    trained = {candidate.cluster_id for candidate in before.of(ContentRole.TRAIN)}
    assert not {candidate.cluster_id for candidate in after.of(ContentRole.TRAIN)} & set(
        before.newly_set_aside
    )
    assert not trained & set(after.newly_set_aside)


def roles_of(choice: Choice) -> dict[int, set[ContentRole]]:
    """The roles its clusters have from then on."""
    roles: dict[int, set[ContentRole]] = {}
    for role, candidate in choice.contents:
        roles.setdefault(candidate.cluster_id, set()).add(role)
    return roles


def numbered(count: int) -> list[Candidate]:
    """As many contents, each a cluster of its own with the content's id."""
    return [Candidate(n, hashlib.sha256(str(n).encode()).digest(), n, 90) for n in range(count)]


@pytest.mark.parametrize("role", [ContentRole.HELD_OUT, ContentRole.VALIDATION])
def test_a_cluster_keeps_its_part_when_unused_contents_merge_into_it(role: ContentRole) -> None:
    """Whatever is nearly the same as what was held out is held out too."""
    alike = [replace(candidate, cluster_id=7) for candidate in numbered(3)]
    assert choose(alike, {7: {role}}, RECIPE, 100).of(role) == sorted(alike, key=lambda c: c.sha256)


@pytest.mark.parametrize("roles", [*itertools.combinations(ContentRole, 2), tuple(ContentRole)])
def test_a_cluster_merged_of_two_parts_is_left_out(roles: tuple[ContentRole, ...]) -> None:
    """Held out and trained on at once: new snapshots neither train on it nor judge by it."""
    others = numbered(200)
    torn = replace(others[0], cluster_id=7000, score=100)
    choice = choose([torn, *others[1:]], {7000: set(roles)}, RECIPE, 1000)
    assert torn not in [candidate for _, candidate in choice.contents]
    assert 7000 not in choice.newly_set_aside


@given(candidates, candidates, st.dictionaries(st.integers(0, 60), st.integers(0, 60), max_size=40))
def test_no_merge_of_clusters_leaks_what_is_held_out(
    first: list[Candidate], more: list[Candidate], merges: dict[int, int]
) -> None:
    """However clusters merge between two rounds, none that was held out is trained on, nor the reverse."""
    survivor = {cluster: min(cluster, into) for cluster, into in merges.items()}
    survivor = {cluster: survivor.get(into, into) for cluster, into in survivor.items()}
    before = roles_of(choose(first, {}, RECIPE, 30))
    merged: dict[int, set[ContentRole]] = {}
    for cluster, roles in before.items():
        merged.setdefault(survivor.get(cluster, cluster), set()).update(roles)
    known = {candidate.content_id for candidate in first}
    later = [*first, *(candidate for candidate in more if candidate.content_id not in known)]
    later = [replace(c, cluster_id=survivor.get(c.cluster_id, c.cluster_id)) for c in later]
    after = roles_of(choose(later, merged, RECIPE, 30))
    assert all(merged.get(cluster, roles) == roles and len(roles) == 1 for cluster, roles in after.items())


@given(candidates, st.randoms())
def test_the_choice_does_not_depend_on_the_order_of_rows(
    given_candidates: list[Candidate], random: object
) -> None:
    """The same contents give the same snapshot hash, however the database returns them."""
    shuffled = list(given_candidates)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert choose(given_candidates, {}, RECIPE, 50).hash == choose(shuffled, {}, RECIPE, 50).hash


@given(candidates, st.integers(1, 30))
def test_training_takes_the_best_first(given_candidates: list[Candidate], size: int) -> None:
    """What is left out for size scores no better than what is taken."""
    everything = choose(given_candidates, {}, RECIPE, 1000).of(ContentRole.TRAIN)
    taken = choose(given_candidates, {}, RECIPE, size).of(ContentRole.TRAIN)
    assert taken == everything[:size]
    assert [candidate.score for candidate in taken] == sorted((c.score for c in taken), reverse=True)


@given(candidates)
def test_at_most_a_fifth_is_set_aside_to_reach_the_minimum(given_candidates: list[Candidate]) -> None:
    """A small corpus is not eaten up by its own examination."""
    recipe = RECIPE.model_copy(update={"held_out_share": 1e-9, "validation_share": 1e-9})
    clusters = {candidate.cluster_id for candidate in given_candidates}
    choice = choose(given_candidates, {}, recipe, 1000)
    assert len(choice.newly_set_aside) <= max(2, MOST_SET_ASIDE * len(clusters))


def test_the_minimum_is_reached_where_there_is_enough() -> None:
    """With a thousand files the recipe's minima hold."""
    recipe = RECIPE.model_copy(update={"held_out_min": 60, "validation_min": 30})
    choice = choose(numbered(1000), {}, recipe, 1000)
    assert len(choice.of(ContentRole.HELD_OUT)) >= 60
    assert len(choice.of(ContentRole.VALIDATION)) >= 30


@given(candidates, st.integers(1, 60), st.dictionaries(
    st.sampled_from(["python", "go", "*"]), st.floats(0.1, 10), min_size=1
))  # fmt: skip
def test_no_language_has_more_than_its_share(
    given_candidates: list[Candidate], size: int, weights: dict[str, float]
) -> None:
    """Rounded up; a language without a weight has none, and what is taken is the best of each."""
    ordered = choose(given_candidates, {}, RECIPE, 1000).of(ContentRole.TRAIN)
    taken = within_shares(ordered, weights, size)
    groups = [each.language if each.language in weights else "*" for each in ordered]
    total = sum(weights.get(group, 0) for group in set(groups))
    assert len(taken) <= size
    for group in set(groups):
        of_group = [each for each, its in zip(ordered, groups, strict=True) if its == group]
        count = sum(each in of_group for each in taken)
        assert count <= math.ceil(min(size, len(ordered)) * weights.get(group, 0) / max(total, 1e-9))
        assert [each for each in taken if each in of_group] == of_group[:count]


def test_a_language_alone_gets_everything() -> None:
    """Shares are among the languages that there are."""
    ordered = [replace(candidate, language="go") for candidate in numbered(10)]
    assert within_shares(ordered, {"python": 0.9, "go": 0.1}, 8) == ordered[:8]


@given(candidates, st.floats(0, 0.9), st.integers(1, 60))
def test_replay_is_its_share_and_fits_into_the_round(
    given_candidates: list[Candidate], share: float, size: int
) -> None:
    """Of what is trained on; never of a cluster that is held out, or torn, or has no past."""
    recipe = RECIPE.model_copy(update={"replay_share": share})
    old = [Candidate(1000 + n, bytes([n]), 100 + n, 50) for n in range(40)]
    roles = {100 + n: {ContentRole.TRAIN} for n in range(30)}
    roles |= {130: {ContentRole.HELD_OUT}, 131: {ContentRole.TRAIN, ContentRole.VALIDATION}}
    choice = choose(given_candidates, roles, recipe, size, old)
    fresh, replayed = choice.of(ContentRole.TRAIN), choice.of(ContentRole.REPLAY)
    assert len(fresh) + len(replayed) <= size
    assert replayed == old[: len(replayed)]
    assert len(replayed) <= 30
    assert len(replayed) <= share * (len(fresh) + len(replayed)) + 0.5
