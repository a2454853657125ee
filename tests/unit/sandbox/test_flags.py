"""What a program that runs beside its tests must not reach for."""

import pytest

from services.sandbox.inside import flags, unit


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import ctypes", "imports ctypes"),
        ("from gc import get_objects", "imports gc"),
        ("import unittest.mock as m", "imports unittest.mock"),
        ("import os\nos._exit(0)", "uses os._exit"),
        ("from os import _exit", "imports _exit"),
        ("from sys import _getframe as g", "imports _getframe"),
        ("import inspect\ninspect.stack()", "uses inspect.stack"),
        ("def f(e): return e.__traceback__.tb_frame.f_back", "uses"),
        ("getattr(x, '_getframe')", "names _getframe in a string"),
        ("class A:\n  def __eq__(self, o): return True", "gives the same"),
        ("class A:\n  def __eq__(self, o): return self.x is None", "gives the same"),
        ("A.__eq__ = lambda *_: True", "sets __eq__"),
    ],
)
def test_what_reaches_for_the_tests_is_flagged(code, found):
    with pytest.raises(flags.FlaggedError, match=found):
        flags.refuse(code)


@pytest.mark.parametrize(
    "code",
    [
        "import numpy as np\nimport os, inspect\nprint(os.path.join('a'), inspect.signature(print))",
        "class P:\n  def __init__(self, x): self.x = x\n  def __eq__(self, other): return self.x == other.x",
        "import subprocess\nsubprocess.run(['ls'])",
        "def f(frame): return frame.iloc[0]",
    ],
)
def test_honest_programs_are_not(code):
    flags.refuse(code)


def test_the_tests_are_counted_from_the_test_alone():
    test = """
import unittest
class TestCases(unittest.TestCase):
    def test_a(self): pass
    def helper(self): pass
    def test_b(self): pass
"""
    assert unit.methods(test) == {"TestCases.test_a", "TestCases.test_b"}
