"""Which statements the checker runs itself, and which must run beside the program."""

import pytest

from services.sandbox.inside.statements import statements


def places(test):
    return [
        ("here" if one.here else "") + (" beside" if one.beside else "") + (" test" if one.is_test else "")
        for one in statements(test)
    ]


@pytest.mark.parametrize(
    "test",
    [
        "assert f(2) == 3",
        "assert sorted(f([1])) == [1]",
        "assert f(1)[0] == 2",
        "assert all(f(x) for x in (1, 2))",
        "assert f(g(1), key=2) is None",
        "for x in [1, 2]:\n    assert f(x) == x",
        "try:\n    f(0)\nexcept ValueError:\n    pass\nelse:\n    assert False",
    ],
)
def test_calls_with_plain_results_are_checked_here(test):
    assert places(test) == ["here test"]


@pytest.mark.parametrize(
    "test", ["assert Stack().size() == 0", "assert isinstance(f(), Stack)", "assert f is not None"]
)
def test_objects_stay_beside_the_program(test):
    assert places(test) == [" beside test"]


def test_setup_without_the_program_is_run_in_both_places():
    assert places("import math\nx = [1]\nassert f(x) == math.pi") == [
        "here beside",
        "here beside",
        "here test",
    ]


def test_what_hangs_on_an_object_is_beside_as_well():
    assert places("s = Stack().push(1)\nassert s.pop() == 1\nassert f(1) == 1") == [
        " beside",
        " beside test",
        "here test",
    ]


def test_a_result_whose_methods_are_called_later_is_kept_beside():
    assert places("s = Stack()\nassert s.size() == 0") == [" beside", " beside test"]


def test_a_result_that_is_kept_is_kept_here():
    assert places("y = f(2)\nassert y == 4") == ["here", "here test"]


def test_no_python_is_said_to_be_none():
    with pytest.raises(SyntaxError):
        list(statements("assert ("))
