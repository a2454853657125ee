"""Files of prompts: what is read of them, and what is wrong with others."""

from pathlib import Path

import pytest

from services.core.errors import ConfigurationError
from services.trainer.comparing import questions
from services.trainer.comparing.questions import Prompt
from services.trainer.samples.source import SampleSource, Unit


def test_a_text_file_has_a_prompt_a_line(tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"
    path.write_text("def f(\n\nclass A:\n")
    assert questions.prompts(path) == [Prompt("line 1", "def f("), Prompt("line 3", "class A:")]


def test_json_lines_may_have_answers_and_names(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "a", "answer": "b", "name": "n", "other": 1}\n{"prompt": "c\\nd"}\n')
    assert questions.prompts(path) == [Prompt("n", "a", "b"), Prompt("line 2", "c\nd")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds 0 prompts"),
        ("{", "line 1: "),
        ('{"prompt": ""}', "no prompt"),
        ('{"prompt": "a", "answer": 3}', "other than text"),
        ('{"prompt": "a", "name": "n"}\n{"prompt": "b", "name": "n"}', "name of two"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        questions.prompts(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"gone\.txt"):
        questions.prompts(tmp_path / "gone.txt")


def test_contents_arrive_as_they_were_sent() -> None:
    import json

    unit = Unit("function", "f", 0, 3, 1, 1, 0)
    content = SampleSource(7, b"\x01" * 32, "python", "text", 90, (unit,), "repo", "a.py", ((0, 2),), 5)
    sent = json.loads(json.dumps(questions.as_json([content])))
    assert questions.content_of(sent[0]) == content
