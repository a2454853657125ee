"""Decontamination: what is caught of a benchmark's tasks, and what is not mistaken for one."""

import ast
import pickle
import re
import time

import pytest

from services.processor.stages import benchmarks, decontaminate, words
from services.processor.stages.benchmarks import Task
from services.processor.stages.decontaminate import Benchmarks

TASKS = benchmarks.load(None)
HUMAN_EVAL = Benchmarks.of(TASKS)

BEFORE = '''
"""A module with other things."""

import logging

LOG = logging.getLogger(__name__)


class Accounts:
    """Balances by owner."""

    def __init__(self, path):
        self._path = path
        self._balances = {}

    def read(self):
        with self._path.open() as lines:
            for line in lines:
                owner, balance = line.rsplit(",", 1)
                self._balances[owner] = int(balance)

'''
AFTER = """

def main(argv):
    accounts = Accounts(argv[1])
    accounts.read()
    LOG.info("read %d accounts", len(accounts))
    return 0
"""


def match(code, language="python"):
    """What is said of a file that holds this among other things."""
    return HUMAN_EVAL.match(BEFORE + code + AFTER, language)


class Renamed(ast.NodeTransformer):
    """Other names for all that a program names itself, no docstrings, no annotations."""

    def __init__(self, tree):
        self.names = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                self._name(node.arg)
            elif isinstance(node, ast.FunctionDef):
                self._name(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._name(node.id)

    def _name(self, name):
        self.names.setdefault(name, f"thing_{len(self.names)}")

    def visit_Name(self, node):
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        node.arg, node.annotation = self.names.get(node.arg, node.arg), None
        return node

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.name, node.returns = self.names[node.name], None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node


def reformatted(task):
    """The solution under other names, printed anew from its syntax tree."""
    tree = ast.parse(whole(task))
    return ast.unparse(ast.fix_missing_locations(Renamed(tree).visit(tree)))


def renamed(task):
    """The solution under other names, laid out as it was."""
    names = Renamed(ast.parse(whole(task))).names
    pattern = rf"(?<![\w.])({'|'.join(map(re.escape, names))})\b"
    return re.sub(pattern, lambda found: names[found.group()], task.solution)


def whole(task):
    return task.texts[0] + task.solution


def caught(copy):
    """How many of the 164 are caught when copied so."""
    return sum(match(copy(task)) is not None for task in TASKS)


def test_a_file_without_tasks_passes():
    """What holds the copies in these tests is no task itself."""
    assert match("") is None


def test_every_task_is_caught_word_for_word():
    """All 164, prompt and solution, inside a larger file."""
    assert caught(whole) == 164


def test_solutions_alone_are_caught():
    """Without the prompt, all but those of a line or two that any program holds."""
    assert caught(lambda task: task.solution) >= 145


def test_renamed_solutions_are_caught():
    """Other names and no docstring: the longer solutions are still known."""
    assert caught(renamed) >= 138


def test_renamed_and_reformatted_solutions_are_caught():
    """Printed anew from the syntax tree, with other names and no docstring."""
    assert caught(reformatted) >= 138


def test_a_comment_a_line_does_not_hide_a_solution():
    """Comments are no part of the skeleton."""
    solution = TASKS[10].solution + TASKS[36].solution
    commented = re.sub(r"(?<=\S)\n", "  # and then\n", solution)
    assert match(commented) is not None


def test_the_docstring_alone_is_caught_in_any_language():
    """A prompt's words as another language's comment are the same words."""
    prompt = TASKS[1].texts[0].split('"""')[1]
    said = match("".join(f"// {line}\n" for line in prompt.splitlines()), "go")
    assert said == "HumanEval/1: ten words in a row in common"


def test_it_says_which_task_and_how():
    """A person can look up what a file was refused for."""
    assert match(reformatted(TASKS[36])) == "HumanEval/36: its solution under other names"


@pytest.mark.parametrize(
    "common",
    [
        "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0\n" * 3,
        "for i in range(len(l)):\n    for j in range(i + 1, len(l)):\n        pass\n",
        "from typing import List, Tuple, Dict, Any, Optional, Union, Callable\n",
        "if n == 0:\n    return False\nfor i in range(n):\n    if i % 2 == 0:\n        return True\n",
        "return sorted(set(values))\n",
        "while b:\n    a, b = b, a % b\n",
    ],
)
def test_common_code_is_no_task(common):
    """Numbers, imports and the idioms of the language are everywhere."""
    assert match(common) is None


def test_what_many_tasks_share_is_no_task():
    """The frame of a benchmark's lines is not what it asks for."""
    frame = "please write a function that solves the following task and returns"
    tasks = [Task(f"x/{n}", "x", "python", (f"{frame} number {word}",), "") for n, word in enumerate("abc")]
    assert Benchmarks.of(tasks).match(frame, "python") is None
    assert Benchmarks.of(tasks[:2]).match(frame, "python") is not None


def test_the_same_tasks_in_three_files_are_still_tasks():
    """Copies of a benchmark do not make it common."""
    said = "please write a function that solves the following task and returns"
    tasks = [Task(f"{n}/1", str(n), "python", (said,), "") for n in range(5)]
    assert Benchmarks.of(tasks).match(said, "python") is not None


def test_a_folder_adds_to_human_eval(tmp_path):
    """A private benchmark is kept out of training just by lying there."""
    (tmp_path / "own.jsonl").write_text(
        '{"task_id": 1, "text": "Compute the orbital period of a moon from its distance to the planet"}'
    )
    both = Benchmarks.load(tmp_path)
    assert both.match("# compute the orbital period of a moon from its distance", "c") == (
        "own/1: ten words in a row in common"
    )
    assert both.match(whole(TASKS[0]), "python") is not None


def test_known_ngrams_give_the_same_answer():
    """Whoever has hashed the words already passes them on."""
    grams = words.ngrams(words.hashes(whole(TASKS[0]).encode()))
    assert HUMAN_EVAL.match(whole(TASKS[0]), "python", grams) == HUMAN_EVAL.match(whole(TASKS[0]), "python")


def test_survives_the_way_into_a_child_process():
    """It can be pickled."""
    copy = pickle.loads(pickle.dumps(HUMAN_EVAL))
    assert copy.match(whole(TASKS[3]), "python") == HUMAN_EVAL.match(whole(TASKS[3]), "python")


@pytest.mark.parametrize(
    "hostile",
    [
        "a " * 500_000,
        "0," * 500_000,
        "(" * 1_000_000,
        '"""' * 300_000,
        "/*" * 500_000,
        "return x + y\n" * 70_000,
    ],
    ids=["words", "numbers", "brackets", "quotes", "comments", "idiom"],
)
def test_hostile_megabyte_is_cheap(hostile):
    """A megabyte of anything costs less than a second."""
    begun = time.process_time()
    HUMAN_EVAL.match(hostile, "python")
    assert time.process_time() - begun < 1.0


def test_a_megabyte_of_known_skeletons_is_linear():
    """Half of every solution, again and again: many hits, no match, still in seconds."""
    halves = "\n".join(line for task in TASKS for line in task.solution.splitlines()[::2])
    begun = time.process_time()
    decontaminate.Benchmarks.match(HUMAN_EVAL, (halves * 100)[:1_000_000], "python")
    assert time.process_time() - begun < 5.0
