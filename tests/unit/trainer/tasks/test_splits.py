"""Which split a group is in: by its name, for good."""

from services.trainer.tasks import splits

TESTED = ["BigCodeBench/0", "BigCodeBench/17", "BigCodeBench/21", "BigCodeBench/22", "BigCodeBench/23"]
GROUPS = [f"BigCodeBench/{number}" for number in range(5000)]


def test_a_fifth_of_the_groups_is_tested_by():
    share = sum(splits.split_of(group) == "test" for group in GROUPS) / len(GROUPS)
    assert abs(share - splits.TEST_SHARE) < 0.02


def test_a_group_is_where_it_always_was():
    """Written down once: a release that moved tasks between splits would train on what it was judged by."""
    tested = [group for group in GROUPS[:30] if splits.split_of(group) == "test"]
    assert tested == TESTED


def test_what_is_set_aside_for_validation_is_independent_of_what_is_tested_by():
    train = [group for group in GROUPS if splits.split_of(group) == "train"]
    share = sum(map(splits.is_set_aside, train)) / len(train)
    assert abs(share - splits.VALIDATION_SHARE) < 0.02


def test_any_name_has_a_place():
    assert 0.0 <= splits.fraction("test", "\ud800") < 1.0
