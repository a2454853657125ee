"""Suites of programs in the sandbox itself."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.core.sandbox import Sandbox
from services.trainer.suites import programs, references
from tests.unit.trainer.suites.test_formats import BIG_CODE_BENCH

TESTS = """\
import unittest
class TestCases(unittest.TestCase):
    def test_root(self):
        self.assertEqual(task_func(9), 3)
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox.open(None) as opened:
        yield opened


def test_references_of_humaneval_pass_in_every_form_a_model_may_write_them(sandbox: Sandbox) -> None:
    """As a continuation, as a whole program in a fence, as a body in a fence."""
    tasks = programs.load("humaneval", Path())[30:40]  # with some whose tests call helpers of the prompt
    forms = {
        "{task.continuation}\ndef other():\n    pass\n": False,
        "So:\n```python\n{task.reference}\n```\nDone.": True,
        "```python\n{task.solution}```": True,
    }
    for form, chat in forms.items():
        scores = programs.judge(tasks, [[form.format(task=task)] for task in tasks], sandbox, chat=chat)
        assert programs.figures(scores) == {"pass@1": 1.0}, form


def test_a_file_in_bigcodebenchs_format_is_run_with_its_unittests(sandbox: Sandbox, tmp_path: Path) -> None:
    """A right and a wrong completion; a task that needs what is not there is left out and named."""
    right = {**BIG_CODE_BENCH, "test": TESTS}
    elsewhere = {**right, "task_id": "BigCodeBench/1", "code_prompt": "import not_there\ndef task_func(x):"}
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, (right, elsewhere))))
    found = references.sound(programs.load("mine", tmp_path), sandbox, tmp_path / "sound.json")
    assert [task.name for task in found.tasks] == ["BigCodeBench/0"]
    assert "not_there" in found.excluded["BigCodeBench/1"]
    texts = [["\n    return math.sqrt(x)", "\n    return 4"]]
    (score,) = programs.judge(found.tasks, texts, sandbox, chat=False)
    assert score.value == 0.5
