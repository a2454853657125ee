"""Suites of programs, with a sandbox that runs nothing: a program passes when it holds the word."""

import json

import pytest

from services.core.errors import ConfigurationError
from services.core.sandbox import Outcome
from services.trainer import generation
from services.trainer.suites import programs, references
from services.trainer.suites.formats import Task

WORD = "right"


class FakeSandbox:
    def __init__(self):
        self.ran = []

    def run(self, programs, on_done=None):
        self.ran += programs
        return [
            Outcome(each.key, WORD in each.code, "passed" if WORD in each.code else "failed: no")
            for each in programs
        ]


@pytest.fixture
def sandbox():
    return FakeSandbox()


def task(name, solution=f"    return {WORD!r}\n", style="check"):
    prompt = f"def {name}():\n"
    return Task(f"Mine/{name}", prompt, None, prompt, solution, "def check(candidate): ...", name, style)


def test_a_suite_is_a_file_of_the_folder_by_its_name(tmp_path):
    record = {
        "task_id": "0", "prompt": "def f():\n", "entry_point": "f", "canonical_solution": "    pass",
        "test": "def check(candidate):\n    pass",
    }  # fmt: skip
    (tmp_path / "mine.jsonl").write_text(json.dumps(record))
    assert [each.name for each in programs.load("mine", tmp_path)] == ["0"]


def test_humaneval_is_installed(tmp_path):
    assert len(programs.load("humaneval", tmp_path / "nowhere")) == 164


def test_a_suite_that_is_not_there_is_an_error_that_names_those_that_are(tmp_path):
    (tmp_path / "other.jsonl.gz").touch()
    (tmp_path / "README.md").touch()
    with pytest.raises(ConfigurationError, match=r"mine\.jsonl.*humaneval, other\. "):
        programs.load("mine", tmp_path)


def test_the_value_is_the_share_of_completions_that_pass(sandbox):
    texts = [["    right", "    wrong", "    wrong", "    worse"], ["    wrong"] * 4]
    scores = programs.judge([task("f"), task("g")], texts, sandbox, chat=False)
    assert [score.value for score in scores] == [0.25, 0.0]
    assert scores[0].detail["results"] == {"failed: no": 3, "passed": 1}


def test_equal_programs_are_run_once(sandbox):
    programs.judge([task("f")], [["    right\ndef g(): ...", "    right", "    wrong"]], sandbox, chat=False)
    assert len(sandbox.ran) == 2


def test_an_answer_is_read_as_a_chat_models(sandbox):
    (score,) = programs.judge(
        [task("f")], [["Like so:\n```python\ndef f():\n    right\n```"]], sandbox, chat=True
    )
    assert sandbox.ran[0].code == "def f():\n    right\n"
    assert score.value == 1.0


def test_a_task_without_a_completion_is_an_error(sandbox):
    with pytest.raises(ValueError, match="Mine/f has no completion"):
        programs.judge([task("f")], [[]], sandbox, chat=False)


def test_an_items_key_changes_with_the_task_and_with_how_it_was_asked():
    keys = {programs.item_key(each, asked) for each in (task("f"), task("g")) for asked in ("", "512")}
    assert len(keys) == 4


def test_figures_are_those_that_every_task_has_programs_for(sandbox):
    scores = programs.judge(
        [task("f"), task("g")], [["    right"] * 10, ["    wrong"] * 9 + ["    right"]], sandbox, chat=False
    )
    assert programs.figures(scores) == {"pass@1": pytest.approx(0.55), "pass@10": pytest.approx(1.0)}


def test_a_task_whose_reference_fails_is_excluded_with_the_reason(sandbox, tmp_path):
    found = references.sound([task("f"), task("g", "    return None\n")], sandbox, tmp_path / "known.json")
    assert [each.name for each in found.tasks] == ["Mine/f"]
    assert found.excluded == {"Mine/g": "failed: no"}


def test_a_reference_that_passed_is_not_run_again(sandbox, tmp_path):
    known = tmp_path / "results" / "known.json"
    references.sound([task("f"), task("g", "    return None\n")], sandbox, known)
    sandbox.ran.clear()
    found = references.sound([task("f"), task("g", "    return None\n")], sandbox, known)
    assert [each.key for each in sandbox.ran] == ["Mine/g"]
    assert [each.name for each in found.tasks] == ["Mine/f"]


def test_a_base_model_is_given_the_prompt_and_a_chat_model_a_question(monkeypatch):
    monkeypatch.setattr(generation, "prompt_ids", lambda _, text, *, chat: [chat, text], raising=False)
    worded = Task("Mine/h", "def h():\n", "Write h.", "def h():\n", "", "", "h", "unittest")
    base = programs.prompts([task("f"), worded], None, chat=False)
    chat = programs.prompts([task("f"), worded], None, chat=True)
    assert base == [[False, "def f():"], [False, "def h():"]]
    assert chat[0] == [True, "Complete the following Python code:\n\n```python\ndef f():\n```"]
    assert chat[1] == [True, "Write h."]
