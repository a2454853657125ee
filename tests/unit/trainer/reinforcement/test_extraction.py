"""Which part of an answer is the program."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.reinforcement.extraction import extract
from services.trainer.suites.formats import Task

TASK = Task(
    "Mine/1", "def f(x):\n", "Return x.", "import math\n\ndef f(x):\n", "", "assert f(1)", "f", "assert"
)


@pytest.mark.parametrize(
    "text",
    [
        "Here it is:\n```python\ndef f(x):\n    return x\n```\nIt returns x.",
        "```python\ndef f(x):\n    return x\n",  # cut off before the fence
        "def f(x):\n    return x",
    ],
)
def test_the_program_is_the_block_that_defines_the_entry_point_with_the_tasks_imports(text: str) -> None:
    assert str(extract(TASK, text)).split() == ["import", "math", "def", "f(x):", "return", "x"]


def test_a_body_alone_goes_behind_the_prompt() -> None:
    assert extract(TASK, "```python\nreturn x\n```") == "def f(x):\n    return x\n"


@pytest.mark.parametrize("text", ["", "  \n\n", "```python\n```", "```\n   \n```\nThat is all."])
def test_without_any_code_there_is_none(text: str) -> None:
    assert extract(TASK, text) is None


@given(st.text(max_size=300))
def test_any_text_becomes_a_program_or_none(text: str) -> None:
    assert isinstance(extract(TASK, text), str | None)
