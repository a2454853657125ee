"""The program in what a model wrote."""

import pytest

from services.trainer.suites.extraction import STOPS, answered, continued
from services.trainer.suites.formats import Task

PROMPT = 'import math\n\n\ndef root(x):\n    """Its root."""\n'
TASK = Task("Mine/0", PROMPT, None, PROMPT, "    return math.sqrt(x)\n", "", "root", "check")
WHOLE = "def root(x):\n    return math.sqrt(x)\n"


def works(program):
    names = {}
    exec(program, names)
    return names["root"](9) == 3


@pytest.mark.parametrize("stop", STOPS)
def test_a_continuation_ends_with_the_function(stop):
    body = "    if x:\n        # why\n        return math.sqrt(x)\n"
    assert continued(TASK, f"\n{body}{stop} something else") == PROMPT + body


def test_a_task_is_asked_without_the_white_space_that_belongs_to_its_answer():
    assert TASK.asked == PROMPT.rstrip()
    assert TASK.asked + TASK.continuation == TASK.reference
    assert works(continued(TASK, TASK.continuation))


@pytest.mark.parametrize(
    "text",
    [
        f"Here it is:\n\n```python\n{WHOLE}```\nIt is short.",
        f"```python\nimport math\n\n{WHOLE}```",
        f"```\n{WHOLE}",  # cut short by the limit
        f"~~~py\n{WHOLE}~~~",
        f"First:\n```bash\npip install math\n```\nthen\n```python\n{WHOLE}```",
        WHOLE,
        "```python\n    return math.sqrt(x)\n```",
        "```python\nreturn math.sqrt(x)\n```",
        "    return math.sqrt(x)",
        f"  ```python\n{WHOLE}  ```",
    ],
)
def test_an_answer_that_is_right_becomes_a_program_that_works(text):
    assert works(answered(TASK, text))


def test_helpers_of_the_prompt_stay():
    prompt = "def helper(x):\n    return x ** 0.5\n\n\ndef root(x):\n    '''Its root.'''\n"
    task = Task("Mine/0", prompt, None, prompt, "", "", "root", "check")
    assert works(answered(task, "```python\ndef root(x):\n    return helper(x)\n```"))


@pytest.mark.parametrize("text", ["", "```", "```python\n```", "\0", "(" * 5000, "I cannot do that."])
def test_any_text_becomes_some_program(text):
    assert TASK.prompt in answered(TASK, text)
