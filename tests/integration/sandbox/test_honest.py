"""What honest programs may do: the corners where plain values and calls from afar could get in the way."""

import pytest

THREAD = """
import threading
def f():
    out = []
    thread = threading.Thread(target=out.append, args=[1])
    thread.start()
    thread.join()
    return out
"""


@pytest.mark.parametrize(
    ("code", "test"),
    [
        ("def f(): return {1: (2, [3]), 'a': {4}}", "c() == {1: (2, [3]), 'a': {4}}"),
        ("def f(): return 3 ** 20000", "c() == 3 ** 20000"),
        ("def f(): return float('nan')", "c() != c()"),
        ("def f(): return (1, 2)", "c() != [1, 2]"),
        ("def f(): return True", "c() is True"),
        ("def f(x): return x", "c({1: 'a', (2,): None}) == {1: 'a', (2,): None}"),
        ("from collections import Counter\ndef f(): return Counter('aab')", "c() == {'a': 2, 'b': 1}"),
        ("def f(n):\n  for i in range(n): yield i", "list(c(3)) == [0, 1, 2]"),
        ("def f(n): return map(str, range(n))", "c(2) != ['0', '1']"),
        ("def f(*args, key=1): return args, key", "c(1, 2, key=3) == ((1, 2), 3)"),
        ("state = []\ndef f(x):\n  state.append(x)\n  return len(state)", "[c(1), c(1)] == [1, 2]"),
        ("import math, re, typing, random\ndef f(): return math.floor(2.5)", "c() == 2"),
        ("def f(s): return s.encode()", "c('é😀') == 'é😀'.encode()"),
        ("def f(n): return n and 1 + f(n - 1)", "c(900) == 900"),
        ("from __future__ import annotations\ndef f(x: No): return x", "c(1) == 1"),
        ("import dataclasses as d\n@d.dataclass\nclass P:\n  x: 'int'\ndef f(): return P(2).x", "c() == 2"),
        ("print('hello')\ndef f(): print('x' * 100000); return 1", "c() == 1"),
        ("import tempfile\ndef f():\n  with tempfile.TemporaryFile() as t: return t.write(b'a')", "c() == 1"),
        (THREAD, "c() == [1]"),
    ],
)  # fmt: skip
def test_an_honest_program_passes(judged, code, test):
    assert judged(code, f"def check(c):\n    assert {test}").result == "passed"


def test_a_test_may_expect_an_exception(judged):
    test = "def check(c):\n  try: c(0)\n  except ZeroDivisionError: return\n  assert False"
    assert judged("def f(x): return 1 / x", test).passed


def test_an_exception_of_its_own_counts_as_what_it_is_derived_from(judged):
    test = "def check(c):\n  try: c()\n  except ValueError as exc: return\n  assert False"
    assert judged("class Bad(ValueError): pass\ndef f(): raise Bad('bad')", test).passed


def test_a_function_that_works_in_place_is_seen_to(judged):
    test = "def check(c):\n  x = [3, 1, 2]\n  assert c(x) is None and x == [1, 2, 3]"
    assert judged("def f(x): x.sort()", test).passed


def test_an_argument_is_not_changed_by_a_function_that_answers(judged):
    """Else it could answer the question that it would rather have been asked."""
    test = "def check(c):\n  x = [3, 1]\n  assert c(x) == 2 and x == [3, 1]"
    assert judged("def f(x):\n  n = len(x)\n  x.clear()\n  return n", test).passed


def test_the_context_answers_for_itself(judged):
    """The program's own `double` is not the one that the test calls."""
    context = "def double(x):\n    return 2 * x\n\ndef f(x):\n    '''The double.'''\n"
    cheat = context + "    return 0\ndef double(x): return 0\n"
    test = "def check(c):\n  assert c(2) == double(2)"
    assert judged(context + "    return double(x)\n", test, context=context).passed
    assert not judged(cheat, test, context=context).passed


def test_without_context_the_test_calls_the_program(judged):
    assert judged("def g(x): return x\ndef f(x): return x", "def check(c): assert c(g(1)) == 1").passed


def test_each_assertion_counts(judged):
    test = "import math\nx = [1, 2]\nassert f(x) == 2\nassert f([]) == 1\nassert math.sqrt(f([0] * 4)) == 2\n"
    outcome = judged("def f(x): return len(x)", test, style="assert")
    assert (outcome.tests_passed, outcome.tests, outcome.passed) == (2, 3, False)


def test_assertions_about_objects_run_beside_the_program(judged):
    code = "class S:\n  def __init__(self): self.n = 0\n  def up(self):\n    self.n += 1\n    return self\n"
    outcome = judged(code, "s = S()\nassert s.up().n == 1\nassert S().n == 0", style="assert")
    assert (outcome.result, outcome.tests_passed) == ("passed", 2)


def test_what_passed_before_the_time_was_up_counts(judged):
    code = "def f(x):\n  while x: pass\n  return 0\n"
    outcome = judged(code, "assert f(0) == 0\nassert f(1) == 0", style="assert", timeout=0.5)
    assert (outcome.result, outcome.tests_passed, outcome.tests) == ("timed out", 1, 2)


CHECK = "def check(c): assert c() == 1"


def test_waiting_is_not_computing(judged):
    """The limit is of processor time: on a busy machine a program waits for its turn."""
    assert judged("import time\ndef f(): time.sleep(1); return 1", CHECK, timeout=0.5).passed


@pytest.mark.parametrize("style", ["check", "unittest"])
def test_waiting_has_an_end(judged, style):
    """Four times the limit by the clock."""
    test = CHECK if style == "check" else UNIT.format(wrong=6)
    outcome = judged("import time\ndef f(x=0): time.sleep(1e6)", test, timeout=0.25, style=style)
    assert outcome.result == "timed out"
    assert 1.0 <= outcome.seconds < 21.0  # as long as a cage may take to come up


@pytest.mark.parametrize("test", ["while True: pass", "import time\n    time.sleep(1e6)"])
def test_a_test_has_an_end_too(judged, test):
    assert judged("def f(): return 1", f"def check(c):\n    {test}", timeout=0.25).result == "timed out"


@pytest.mark.parametrize("forever", ["sum(range(10 ** 15))", "[0 for _ in iter(int, 1)]"])
def test_computing_has_an_end_wherever_it_happens(judged, forever):
    """In C, where no signal handler of Python's runs, as in Python."""
    assert judged(f"def f(): return {forever}", CHECK, timeout=1.0).result == "timed out"


UNIT = """
import unittest
from unittest.mock import patch
class TestCases(unittest.TestCase):
    def setUp(self): self.x = 2
    def test_right(self): self.assertEqual(f(self.x), 4)
    def test_wrong(self): self.assertEqual(f(3), {wrong})
    @patch("builtins.print")
    def test_patched(self, shown):
        f(1)
        shown.assert_called_once()
    def test_raises(self):
        with self.assertRaises(TypeError): f(None)
"""


@pytest.mark.parametrize(("wrong", "passed"), [(6, 4), (7, 3)])
def test_unit_tests_are_counted(judged, wrong, passed):
    code = "import subprocess, numpy as np\ndef f(x):\n  print(x)\n  return int(np.int64(x) * 2)\n"
    outcome = judged(code, UNIT.format(wrong=wrong), style="unittest", timeout=10.0)
    assert (outcome.tests_passed, outcome.tests, outcome.passed) == (passed, 4, passed == 4), outcome


def test_a_failed_unit_test_says_why(judged):
    outcome = judged("def f(x):\n  print(x)\n  return x + x\n", UNIT.format(wrong=7), style="unittest")
    assert outcome.result == "failed: TestCases.test_wrong: AssertionError: 6 != 7"


def test_a_program_that_does_not_parse_says_so(judged):
    assert judged("def f(:", "def check(c): c()").result.startswith("failed: invalid syntax")


def test_a_test_that_hands_over_a_function_says_it_cannot(judged):
    outcome = judged("def f(g): return g(1)", "def check(c): assert c(lambda x: x) == 1")
    assert "an argument of type function" in outcome.result
