"""What a round trains on and is judged by: never both."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from services.trainer.tasks import choice, splits
from services.trainer.tasks.choice import Usable

GROUPS = [f"group {number}" for number in range(12)]


def usable(task_id, split="train", group=None, **past):
    digest = hashlib.sha256(str(task_id).encode()).digest()
    return Usable(task_id, digest, group or f"task {task_id}", split, **past)


tasks = st.lists(
    st.builds(
        lambda split, group, past: (split, group, past),
        st.sampled_from(["train", "train", "validation", "test"]),
        st.sampled_from(GROUPS),
        st.fixed_dictionaries(
            {name: st.booleans() for name in ("is_test", "has_judged", "is_trained", "has_taught")}
        ),
    ),
    max_size=40,
).map(lambda each: [usable(n, split, group, **past) for n, (split, group, past) in enumerate(each)])


@given(tasks, st.integers(0, 9))
def test_no_test_task_and_nothing_that_judged_is_ever_trained_on(some, seed):
    chosen = choice.choose(some, some, seed)
    by_id = {each.task_id: each for each in some}
    for task_id, _ in chosen.train:
        assert by_id[task_id].split == "train"
        assert not by_id[task_id].is_test
        assert not by_id[task_id].has_judged


@given(tasks, st.integers(0, 9))
def test_no_task_has_two_roles_and_nothing_that_taught_judges(some, seed):
    chosen = choice.choose(some, some, seed)
    ids = [task_id for _, part in chosen.roles for task_id, _ in part]
    assert len(ids) == len(set(ids))
    by_id = {each.task_id: each for each in some}
    assert not any(by_id[task_id].has_taught for task_id, _ in (*chosen.validation, *chosen.held_out))


@given(tasks, st.integers(0, 9))
def test_no_group_of_the_train_split_is_both_trained_on_and_validated_by(some, seed):
    """Unless its kin were judged by before: they stay with validation, the others of the group do not."""
    fresh = [usable(each.task_id, each.split, each.group) for each in some if each.split == "train"]
    chosen = choice.choose(fresh, fresh, seed)
    groups = {each.task_id: each.group for each in fresh}
    trained = {groups[task_id] for task_id, _ in chosen.train}
    assert not trained & {groups[task_id] for task_id, _ in chosen.validation}


@given(tasks, st.integers(0, 9), st.randoms())
def test_the_order_in_which_tasks_are_read_does_not_matter(some, seed, random):
    mixed = list(some)
    random.shuffle(mixed)
    assert choice.choose(mixed, mixed, seed) == choice.choose(some, some, seed)


def test_another_seed_draws_another_order_of_the_same_tasks():
    some = [usable(number) for number in range(200)]
    one, two = (choice.choose(some, [], seed) for seed in (1, 2))
    assert set(one.train) == set(two.train)
    assert one.train != two.train
    assert one.hash != two.hash


def test_new_tasks_come_before_those_that_were_trained_on():
    some = [usable(number, is_trained=number % 2 == 0, has_taught=number % 2 == 0) for number in range(100)]
    new = sum(each.may_teach and not each.is_trained for each in some)
    chosen = choice.choose(some, [], seed=3, most=new)
    assert all(task_id % 2 for task_id, _ in chosen.train)


def test_a_validation_split_of_its_own_is_used_in_place_of_groups_set_aside():
    some = [*(usable(number) for number in range(50)), usable(99, "validation")]
    assert [task_id for task_id, _ in choice.choose(some, [], seed=1).validation] == [99]


def test_one_group_is_set_aside_where_chance_set_none_aside():
    groups = [group for group in (f"g{number}" for number in range(20)) if not splits.is_set_aside(group)][:3]
    some = [usable(number, group=group) for number, group in enumerate(groups)]
    chosen = choice.choose(some, [], seed=1)
    assert (len(chosen.train), len(chosen.validation)) == (2, 1)


def test_so_many_tasks_judge_at_most():
    some = [usable(number, "test") for number in range(choice.MOST_HELD_OUT + 50)]
    assert len(choice.choose([], some, seed=1).held_out) == choice.MOST_HELD_OUT
