"""The choice of a round's snapshot."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from services.core.models import ContentRole
from services.trainer.recipe import Recipe
from services.trainer.selection import MOST_SET_ASIDE, Candidate, choose

RECIPE = Recipe(name="test", base_model="./model")
candidates = st.lists(
    st.builds(
        lambda number, cluster, score: Candidate(
            number, hashlib.sha256(bytes([number])).digest(), cluster, score
        ),
        st.integers(0, 255),
        st.integers(0, 60),
        st.integers(0, 100),
    ),
    unique_by=lambda candidate: candidate.content_id,
    max_size=120,
)


@given(candidates, st.integers(1, 200))
def test_no_cluster_is_divided(given_candidates: list[Candidate], size: int) -> None:
    """Near-duplicates are all trained on, or all held out."""
    choice = choose(given_candidates, {}, set(), RECIPE, size)
    roles: dict[int, set[ContentRole]] = {}
    for role, candidate in choice.contents:
        roles.setdefault(candidate.cluster_id, set()).add(role)
    assert all(len(of_cluster) == 1 for of_cluster in roles.values())


@given(candidates, candidates)
def test_what_is_held_out_stays_held_out(first: list[Candidate], more: list[Candidate]) -> None:
    """A later round trains on no cluster that an earlier one set aside, and sets aside none it trained on."""
    before = choose(first, {}, set(), RECIPE, 1000)
    trained = {candidate.cluster_id for candidate in before.of(ContentRole.TRAIN)}
    known = {candidate.content_id for candidate in first}
    later = [*first, *(candidate for candidate in more if candidate.content_id not in known)]
    after = choose(later, before.newly_set_aside, trained, RECIPE, 1000)
    assert not {candidate.cluster_id for candidate in after.of(ContentRole.TRAIN)} & set(
        before.newly_set_aside
    )
    assert not trained & set(after.newly_set_aside)


@given(candidates, st.randoms())
def test_the_choice_does_not_depend_on_the_order_of_rows(
    given_candidates: list[Candidate], random: object
) -> None:
    """The same contents give the same snapshot hash, however the database returns them."""
    shuffled = list(given_candidates)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert (
        choose(given_candidates, {}, set(), RECIPE, 50).hash == choose(shuffled, {}, set(), RECIPE, 50).hash
    )


@given(candidates, st.integers(1, 30))
def test_training_takes_the_best_first(given_candidates: list[Candidate], size: int) -> None:
    """What is left out for size scores no better than what is taken."""
    everything = choose(given_candidates, {}, set(), RECIPE, 1000).of(ContentRole.TRAIN)
    taken = choose(given_candidates, {}, set(), RECIPE, size).of(ContentRole.TRAIN)
    assert taken == everything[:size]
    assert [candidate.score for candidate in taken] == sorted((c.score for c in taken), reverse=True)


@given(candidates)
def test_at_most_a_fifth_is_set_aside_to_reach_the_minimum(given_candidates: list[Candidate]) -> None:
    """A small corpus is not eaten up by its own examination."""
    recipe = RECIPE.model_copy(update={"held_out_share": 1e-9, "validation_share": 1e-9})
    clusters = {candidate.cluster_id for candidate in given_candidates}
    choice = choose(given_candidates, {}, set(), recipe, 1000)
    assert len(choice.newly_set_aside) <= max(2, MOST_SET_ASIDE * len(clusters))


def test_the_minimum_is_reached_where_there_is_enough() -> None:
    """With a thousand files the recipe's minima hold."""
    many = [Candidate(n, hashlib.sha256(str(n).encode()).digest(), n, 90) for n in range(1000)]
    recipe = RECIPE.model_copy(update={"held_out_min": 60, "validation_min": 30})
    choice = choose(many, {}, set(), recipe, 1000)
    assert len(choice.of(ContentRole.HELD_OUT)) >= 60
    assert len(choice.of(ContentRole.VALIDATION)) >= 30
