"""Metadata: guessed from solutions, read from files, written as comments."""

import ast
import json
from pathlib import Path

import pytest

from services.core.errors import ConfigurationError
from services.trainer.experiments import metadata
from services.trainer.experiments.derived import derive
from services.trainer.suites import formats
from services.trainer.suites.formats import Task


def task(solution: str, prompt: str = "def f(xs: list[int], n=2) -> int:\n") -> Task:
    return Task("T/0", prompt, None, prompt, solution, "def check(candidate):\n    pass\n", "f", "check")


@pytest.mark.parametrize(
    ("solution", "algorithm", "time", "space"),
    [
        ("    return n + 1\n", "direct", "O(1)", "O(1)"),
        ("    for x in xs:\n        n += x\n    return n\n", "loop", "O(n)", "O(1)"),
        ("    return sum(x for x in xs)\n", "comprehension", "O(n)", "O(1)"),
        ("    return [x for x in xs]\n", "comprehension", "O(n)", "O(n)"),
        (
            "    for x in xs:\n        for y in xs:\n            n += x * y\n    return n\n",
            "nested-loop", "O(n^2)", "O(1)",
        ),
        ("    return [x * y for x in xs for y in xs]\n", "nested-loop", "O(n^2)", "O(n)"),
        ("    return sorted(xs)[0]\n", "sort", "O(n log n)", "O(n)"),
        ("    while n > 1:\n        n //= 2\n    return n\n", "halving", "O(log n)", "O(1)"),
        ("    return n if n < 2 else f(xs, n - 1)\n", "recursion", "O(n)", "O(n)"),
        ("    return n if n < 2 else f(xs, n - 1) + f(xs, n - 2)\n", "recursion", "O(2^n)", "O(n)"),
    ],
)  # fmt: skip
def test_algorithm_and_complexity_are_guessed(solution: str, algorithm: str, time: str, space: str) -> None:
    said = derive(task(solution))
    assert (said["algorithm"], said["time"], said["space"]) == (algorithm, time, space)


def test_name_arguments_types_and_calls_are_read_off() -> None:
    said = derive(task("    seen = set()\n    return len(seen) + max(xs)\n"))
    assert said["function"] == "f"
    assert said["arguments"] == "xs: list[int], n"
    assert said["returns"] == "int"
    assert said["calls"] == "len, max, set"
    assert said["structures"] == "set"


def test_of_what_is_no_python_the_name_is_left() -> None:
    assert derive(task("    return (\n")) == {"function": "f"}


def test_every_problem_of_humaneval_has_all_of_it() -> None:
    for problem in formats.human_eval():
        assert {"function", "arguments", "algorithm", "time", "space"} <= derive(problem).keys()


def test_annotations_stand_right_before_the_function() -> None:
    prompt = "import math\n\n\ndef helper(x):\n    return x\n\n\ndef f(x):\n"
    problem = task("    return x\n", prompt)
    told = {"T/0": {"function": "f", "time": "O(1)", "space": "O(1)"}}
    assert metadata.written(problem, "annotated", told, ["time", "function"]) == (
        "import math\n\n\ndef helper(x):\n    return x\n\n\n"
        "# .comments metadata\n# @time O(1)\n# @function f\n\ndef f(x):\n"
    )


def test_a_plain_prompt_is_the_problems_own() -> None:
    assert metadata.written(task(""), "plain", {}) == task("").prompt


def test_an_annotated_problem_of_humaneval_is_the_same_program() -> None:
    """Comments alone are added: the judge's program is the plain one."""
    problems = formats.human_eval()
    told = metadata.load("derived", Path(), problems)
    for problem in problems:
        annotated = metadata.written(problem, "annotated", told) + problem.solution
        assert ast.dump(ast.parse(annotated)) == ast.dump(ast.parse(problem.reference))


@pytest.mark.parametrize(
    ("field", "annotation"),
    [
        ("functionName", "function"),
        ("algorithmType", "algorithm"),
        ("timeComplexity", "time"),
        ("spaceComplexity", "space"),
        ("dataStructures", "data-structures"),
        ("time", "time"),
        ("name", "name"),
    ],
)
def test_fields_become_annotations(field: str, annotation: str) -> None:
    assert metadata.annotation(field) == annotation


@pytest.fixture
def read(tmp_path: Path):
    def from_file(value: object, name: str = "told.json") -> metadata.Metadata:
        lines = value if isinstance(value, str) else json.dumps(value)
        (tmp_path / name).write_text(lines, encoding="utf-8")
        return metadata.load(name, tmp_path, [task("")])

    return from_file


def test_a_file_has_fields_by_problem(read) -> None:
    fields = {"functionName": "f", "timeComplexity": "O(n^2)", "edgeCases": ["empty", "one"], "more": None}
    assert read({"T/0": fields}) == {"T/0": {"function": "f", "time": "O(n^2)", "edge-cases": "empty, one"}}


def test_a_file_of_rows_names_its_problem_or_has_its_prompt(read) -> None:
    named = {"task_id": "T/0", "metadata": {"timeComplexity": "O(1)"}}
    prompted = {"prompt": task("").prompt, "completion": "", "metadata": {"timeComplexity": "O(1)"}}
    assert read([named]) == read([prompted]) == {"T/0": {"time": "O(1)"}}
    assert read(json.dumps(named) + "\n", "told.jsonl") == read([named])


def test_an_annotation_never_leaves_its_comment(read) -> None:
    told = read({"T/0": {"algorithmType": "loop\nimport os\n"}})
    assert told["T/0"]["algorithm"] == "loop import os"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"T/1": {"time": "O(1)"}}, "nothing on 1 problems, as T/0: did you mean T/1?"),
        ("{", "is not JSON"),
        ("3", "expected an object"),
        ({"T/0": "O(1)"}, "expected fields with values"),
        ([{"task_id": "T/0"}], "without the field metadata"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(read, value: object, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(value)
    assert said in str(caught.value)
