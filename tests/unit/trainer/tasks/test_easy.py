"""The easy tasks that are built in."""

import re

from services.trainer.suites import formats
from services.trainer.tasks import easy, screening
from services.trainer.tasks.placed import prompt_digest

TASKS = easy.tasks()
VERSION = "c471a1538734d864"


def test_there_are_enough_of_them_and_no_two_are_the_same():
    assert len(TASKS) >= 240
    assert len({each.task.name for each in TASKS}) == len(TASKS)
    assert len({prompt_digest(each.task) for each in TASKS}) == len(TASKS)


def test_kinds_that_are_tested_by_are_not_trained_on():
    train, test = ({each.group for each in TASKS if each.split == split} for split in ("train", "test"))
    assert not train & test
    assert len(test) >= 10


def test_each_has_five_assertions_or_more_and_no_constant_passes():
    for each in TASKS:
        assert screening.asserts(each.task.test) >= 5, each.task.name
        expected = set(re.findall(r"(?:== | - )(.*?)(?:\) < 1e-6)?$", each.task.test, re.MULTILINE))
        assert len(expected) >= 2, each.task.name


def test_references_pass_their_own_tests():
    for each in TASKS:
        names: dict = {}
        exec(f"{each.task.reference}\n{each.task.test}", names)


def test_none_is_left_out_and_none_is_like_a_benchmarks():
    assert [each for each in screening.screen(TASKS, formats.human_eval()) if each.excluded] == []


def test_examples_in_the_docstring_show_two_different_results():
    for each in TASKS:
        shown = re.findall(r"    >>> .*\n    (.*)", each.task.prompt)
        assert len(set(shown)) == 2, each.task.prompt


def test_they_are_the_same_every_time():
    """Written down: another version is another set, of which every task would count as new."""
    assert easy.version()[:16] == VERSION
