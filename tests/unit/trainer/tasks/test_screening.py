"""What is left out before anything is run."""

import pytest

from services.trainer.suites import formats
from services.trainer.suites.formats import Task
from services.trainer.tasks import screening
from services.trainer.tasks.placed import PlacedTask

SENTENCE = (
    "Return the sum of all numbers of a list that are larger than the limit, or zero if there are none."
)


def task(
    name, says=SENTENCE, test="def check(candidate):\n    assert candidate([1], 0) == 1\n", function="f"
):
    prompt = f'def {function}(numbers, limit):\n    """{says}"""\n'
    return Task(name, prompt, None, prompt, "    return 0\n", test, function, "check")


def placed(each, split="train"):
    return PlacedTask(each, split, each.name, "here")


def reasons(*tasks, benchmarks=()):
    return [each.excluded for each in screening.screen(tasks, benchmarks)]


@pytest.mark.parametrize(
    "test", ["def check(candidate):\n    candidate(1)\n", "def check(candidate):\n    pass\n"]
)
def test_a_test_that_asserts_nothing_is_none(test):
    assert reasons(placed(task("a", test=test))) == ["its test asserts nothing"]


@pytest.mark.parametrize(
    "test",
    [
        "def check(candidate):\n    assert candidate(1)\n",
        "class TestCases(unittest.TestCase):\n    def test(self):\n        self.assertEqual(f(1), 1)\n",
        "class TestCases(TestCase):\n    def test(self):\n        with raises(OSError):\n            f(1)\n",
        "def check(candidate):\n    np.testing.assert_allclose(candidate(1), 1)\n",
    ],
)
def test_assertions_of_any_kind_count(test):
    assert reasons(placed(task("a", test=test))) == [None]


def test_a_test_that_is_no_python_is_said_to_be_none():
    (why,) = reasons(placed(task("a", test="def check(candidate):\n    assert (\n")))
    assert why.startswith("its test is no Python (")


def test_humaneval_is_never_trained_on_but_may_be_tested_by():
    tasks = formats.human_eval()
    assert all(
        why.startswith("a benchmark's, never trained on (HumanEval/")
        for why in reasons(*(placed(each) for each in tasks), benchmarks=tasks)
    )
    assert set(reasons(*(placed(each, "test") for each in tasks), benchmarks=tasks)) == {None}


def test_another_name_for_the_function_and_other_spaces_hide_no_benchmark():
    copied = task("copied", says=SENTENCE.replace(" ", "\n    "), function="other")
    assert reasons(placed(copied), benchmarks=[task("Bench/1")]) == [
        "a benchmark's, never trained on (Bench/1)"
    ]


def test_what_the_test_split_asks_is_not_trained_on_though_a_word_is_another():
    near = task("near", says=SENTENCE.replace("zero", "nothing"))
    assert reasons(placed(task("held"), "test"), placed(near)) == [
        None,
        "asks what a task of the test split asks (held)",
    ]


def test_another_task_of_the_same_kind_is_another_task():
    other = task("other", says="Return the largest of the numbers of a list, or None if the list is empty.")
    assert reasons(placed(task("held"), "test"), placed(other)) == [None, None]
