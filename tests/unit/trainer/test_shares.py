"""No source above its share of a round."""

import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.models import ContentRole
from services.trainer.recipes.recipe import Recipe
from services.trainer.selection.choice import Candidate, Past, choose
from services.trainer.selection.shares import Taken, within

RECIPE = Recipe(name="test", base_model="./model")


@dataclass(frozen=True)
class Content:
    number: int
    size: int
    sources: tuple[int, ...]
    language: str = "python"


contents = st.lists(
    st.builds(
        Content,
        st.integers(0, 10**6),
        st.integers(1, 30_000),
        st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True).map(tuple),
        st.sampled_from(["python", "go"]),
    ),
    max_size=80,
)
shares = st.floats(0.01, 1)


def taken(
    given_contents: list[Content], share: float | None, limit: int = 1000, known: tuple[int, ...] = ()
) -> Taken[Content]:
    return within(given_contents, RECIPE.model_copy(update={"source_share": share}), limit, known)


def alone(of: list[Content]) -> dict[int, list[Content]]:
    """By source, what no other source has."""
    found: dict[int, list[Content]] = {}
    for content in of:
        if len(content.sources) == 1:
            found.setdefault(content.sources[0], []).append(content)
    return found


@given(contents, shares, st.integers(1, 100), st.sets(st.integers(1, 9)))
def test_no_source_has_more_than_its_share(
    given_contents: list[Content], share: float, limit: int, known: set[int]
) -> None:
    """Of the bytes taken, by what it alone has; an even share at least, and one content."""
    found = taken(given_contents, share, limit, tuple(known)).contents
    total = sum(content.size for content in found)
    sources = known | {source for content in given_contents for source in content.sources}
    most = max(share, 1 / max(1, len(sources))) * total
    assert len(found) <= limit
    for of_source in alone(found).values():
        assert len(of_source) == 1 or sum(content.size for content in of_source) <= most * 1.0001


@given(contents, shares, st.integers(1, 100))
def test_a_round_never_starves(given_contents: list[Content], share: float, limit: int) -> None:
    """However the sources are mixed, something is taken where there is anything."""
    assert bool(taken(given_contents, share, limit).contents) == bool(given_contents)


@given(contents, shares, st.integers(1, 100))
def test_what_is_taken_is_the_same_every_time_and_in_order(
    given_contents: list[Content], share: float, limit: int
) -> None:
    found = taken(given_contents, share, limit).contents
    assert found == taken(given_contents, share, limit).contents
    rest = iter(given_contents)
    assert all(content in rest for content in found)


@given(contents, st.integers(1, 100))
def test_without_a_share_the_first_are_taken(given_contents: list[Content], limit: int) -> None:
    assert taken(given_contents, None, limit).contents == given_contents[:limit]


@given(st.lists(st.integers(1, 30_000), max_size=50), shares)
def test_a_single_source_is_trained_on_whole(sizes: list[int], share: float) -> None:
    only = [Content(number, size, (1,)) for number, size in enumerate(sizes)]
    assert taken(only, share) == Taken(only, {})


@pytest.mark.parametrize("flood", [100, 10_000])
def test_a_flood_gets_no_more_the_larger_it_is(flood: int) -> None:
    """Better scored or not, the share is of what the round takes and not of what there is."""
    poison = [Content(number, 1000, (99,)) for number in range(flood)]
    others = [Content(number, 1000, (number % 49,)) for number in range(490)]
    found = taken([*poison, *others], 0.02, limit=100_000)
    assert sum(99 in content.sources for content in found.contents) == 10
    assert len(found.contents) == 500
    assert found.waiting == {99: flood - 10}


def test_large_files_are_no_way_around_it() -> None:
    """A share of contents would let in as many large files as others have small ones."""
    poison = [Content(number, 30_000, (99,)) for number in range(100)]
    others = [Content(number, 500, (number % 20,)) for number in range(2000)]
    found = taken([*poison, *others], 0.1).contents
    assert sum(content.size for content in found if 99 in content.sources) <= 0.1 * sum(
        content.size for content in found
    )


def test_a_source_alone_in_the_backlog_does_not_have_the_round_to_itself() -> None:
    """Where the track has lately trained on others, it waits for them: only one content is taken."""
    flood = [Content(number, 1000, (99,)) for number in range(100)]
    assert len(taken(flood, 0.02, known=tuple(range(60))).contents) == 1


def test_copying_another_sources_files_does_not_use_up_its_share() -> None:
    ours = [Content(number, 1000, (1,)) for number in range(50)]
    others = [Content(number, 1000, (number % 9 + 2,)) for number in range(450)]
    copied = [Content(content.number, content.size, (1, 99)) for content in ours]
    before = taken([*ours, *others], 0.1)
    after = taken([*copied, *others], 0.1)
    assert before.waiting == {} == after.waiting


def test_the_best_are_taken_of_each_source() -> None:
    mixed = [Content(number, random.Random(number).randint(1, 2000), (number % 3,)) for number in range(90)]
    unequal = [content for content in mixed if content.sources != (2,) or content.number > 60]
    found = taken(unequal, 0.34).contents
    first = [content for content in unequal if content.sources == (0,)]
    assert [content for content in found if content.sources == (0,)][:5] == first[:5]


def candidates(count: int, source: int, start: int = 0) -> list[Candidate]:
    return [
        Candidate(number, number.to_bytes(32, "big"), number, 90, size=1000, sources=(source,))
        for number in range(start, start + count)
    ]


def test_what_waits_is_in_no_part_of_the_snapshot_and_said() -> None:
    """It stays in the backlog: nothing is lost, and the round's figures say how much."""
    flood = candidates(1000, 1)
    others = [each for n in range(9) for each in candidates(20, 2 + n, 1000 + 20 * n)]
    recipe = RECIPE.model_copy(update={"source_share": 0.1, "split": "cluster"})
    choice = choose([*flood, *others], {}, recipe, 10_000)
    trained = choice.of(ContentRole.TRAIN)
    from_flood = sum(candidate.sources == (1,) for candidate in trained)
    assert from_flood <= max(1, len(trained) / 10)
    assert sum(choice.waiting.values()) == choice.held_out.waiting > 800
    assert f"{choice.held_out.waiting} wait for later rounds" in choice.held_out.words
    parts = {candidate.content_id for _, candidate in choice.contents}
    assert len(parts) + choice.held_out.waiting == 1000 + 180


@pytest.mark.parametrize(("fewest", "worth"), [(1, True), (1000, False), (5000, True)])
def test_a_round_waits_while_a_flood_leaves_it_too_little(fewest: int, worth: bool) -> None:
    """Until as much has come of all sources as starts a round; never where there is less of everything."""
    recipe = RECIPE.model_copy(update={"source_share": 0.1, "split": "cluster"})
    others = [each for n in range(9) for each in candidates(20, 2 + n, 1000 + 20 * n)]
    choice = choose([*candidates(1000, 1), *others], {}, recipe, 10_000, past=Past())
    assert choice.is_worth_a_round(fewest) is worth
