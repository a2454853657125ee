"""Which programs are kept of a task, and how many of them a round may have."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from services.trainer import solutions
from services.trainer.recipes.recipe import Recipe
from services.trainer.solutions import MOST, MOST_CHARACTERS, Offered, Solved, distinct, share, snapshot_hash

LOOP = "def f(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n"
SUM = "def f(n):\n    return sum(range(n))\n"
FORMULA = "def f(n):\n    return n * (n - 1) // 2\n"


def keyed(*codes: str) -> dict[bytes, str]:
    return {hashlib.sha256(code.encode()).digest(): code for code in codes}


def kept(*codes: str, most: int = MOST) -> set[str]:
    programs = keyed(*codes)
    return {programs[key] for key in distinct(programs, most)}


def recipe(**fields: object) -> Recipe:
    return Recipe.model_validate({"name": "r", "base_model": "b", **fields})


def test_programs_that_differ_in_comments_space_and_names_alone_are_one() -> None:
    shown = "def f(size):\n    # of all below size\n\n    return sum( range(size) )\n"
    assert kept(shown, SUM) == {SUM}


def test_the_shortest_is_always_kept() -> None:
    assert kept(LOOP, FORMULA, SUM, most=1) == {SUM}


def test_what_differs_most_is_kept_before_what_is_shorter() -> None:
    """Nearly a copy says little; another way of solving it says much."""
    assert kept(SUM, SUM.replace("sum(range(n))", "sum(range(0, n))"), LOOP, most=2) == {SUM, LOOP}


def test_text_that_is_no_python_is_compared_by_its_words() -> None:
    assert kept("'''", "'''  ", "( oops", most=4) == {"'''", "( oops"}


@given(st.lists(st.text(max_size=60), max_size=9), st.integers(1, 5))
def test_no_more_are_kept_than_asked_and_the_order_does_not_matter(codes: list[str], most: int) -> None:
    found = kept(*codes, most=most)
    assert len(found) <= most
    assert found <= set(codes)
    assert bool(found) == bool(codes)
    assert kept(*reversed(codes), most=most) == found


def test_what_no_database_stores_and_nobody_learns_from_is_left_out() -> None:
    programs = ["", " \n", "x = '\0'", "x = '\ud800'", "x = 1\n" * MOST_CHARACTERS]
    assert not any(Solved(1, "", code).is_storable for code in programs)
    assert Solved(1, "asked", SUM).is_storable


def offered(number: int) -> list[Offered]:
    return [Offered(each, bytes(32), bytes(32)) for each in range(number)]


def test_a_round_has_at_most_the_share_of_solutions() -> None:
    assert len(share(offered(50), recipe(solutions_share=0.1), contents=90)) == 10
    assert len(share(offered(50), recipe(solutions_share=0.5), contents=7)) == 7


def test_a_round_has_no_more_solutions_than_there_are() -> None:
    assert len(share(offered(3), recipe(solutions_share=0.1), contents=90)) == 3


def test_solutions_take_their_place_among_the_texts_of_a_round() -> None:
    """MAX_DATASET_SIZE and max_contents are of contents and solutions together."""
    assert solutions.room(recipe(max_contents=18), 100, found=2) == 16
    assert solutions.room(recipe(max_contents=18), 100, found=0) == 100


def test_without_solutions_a_snapshot_has_the_hash_that_it_had() -> None:
    contents = hashlib.sha256(b"contents")
    assert snapshot_hash(contents, []) == contents.hexdigest()


def test_the_hash_tells_which_solutions_and_in_which_order() -> None:
    one, other = (Offered(1, bytes([number]) * 32, bytes(32)) for number in (1, 2))
    found = {
        snapshot_hash(hashlib.sha256(), chosen) for chosen in ([], [one], [other], [one, other], [other, one])
    }
    assert len(found) == 5
