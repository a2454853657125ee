"""Benchmark files: what is read of them, and what is said of those that are wrong."""

import gzip
import json

import pytest

from services.core.errors import ConfigurationError
from services.trainer.suites import formats

HUMAN_EVAL = {
    "task_id": "Mine/0",
    "prompt": 'def double(x):\n    """Twice x."""\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}
BIG_CODE_BENCH = {
    "task_id": "BigCodeBench/0",
    "complete_prompt": 'import math\ndef task_func(x):\n    """Its root."""',
    "instruct_prompt": "Write a function that gives the root of x.",
    "canonical_solution": "    return math.sqrt(x)",
    "code_prompt": "import math\ndef task_func(x):",
    "test": "import unittest\nclass TestCases(unittest.TestCase):\n    def test(self):\n        pass\n",
    "entry_point": "task_func",
    "libs": "['math']",
}


def written(folder, *records, name="mine.jsonl"):
    path = folder / name
    text = "".join(f"{record if isinstance(record, str) else json.dumps(record)}\n" for record in records)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def refused(path):
    with pytest.raises(ConfigurationError) as caught:
        formats.read(path)
    return str(caught.value)


def test_the_package_holds_164_problems_of_humaneval():
    tasks = formats.human_eval()
    assert len(tasks) == 164
    assert tasks[0].name == "HumanEval/0"
    assert {task.style for task in tasks} == {"check"}


def test_a_reference_of_humaneval_runs_by_itself():
    task = formats.human_eval()[0]
    names = {}
    exec(task.reference, names)
    assert names[task.entry_point]([1.0, 1.1], 0.5) is True


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.jsonl.gz"])
def test_a_file_in_humanevals_format(tmp_path, name):
    (task,) = formats.read(written(tmp_path, HUMAN_EVAL, name=name))
    assert task.prompt == HUMAN_EVAL["prompt"]
    assert task.instruction is None
    assert task.reference == HUMAN_EVAL["prompt"] + HUMAN_EVAL["canonical_solution"]


def test_a_file_in_bigcodebenchs_format(tmp_path):
    (task,) = formats.read(written(tmp_path, BIG_CODE_BENCH))
    assert task.style == "unittest"
    assert task.instruction == BIG_CODE_BENCH["instruct_prompt"]
    assert task.reference == "import math\ndef task_func(x):\n    return math.sqrt(x)"
    assert task.prompt.endswith('"""Its root."""\n')


@pytest.mark.parametrize("field", formats.HUMAN_EVAL_FIELDS)
def test_a_missing_field_is_named_with_its_line(tmp_path, field):
    record = {**HUMAN_EVAL, "task_id": "Mine/1"}
    del record[field]
    said = refused(written(tmp_path, HUMAN_EVAL, "", record))
    assert "mine.jsonl, line 3: field " + field in said
    assert "HumanEval's format has task_id, prompt" in said


@pytest.mark.parametrize("field", formats.BIG_CODE_BENCH_FIELDS)
def test_a_field_of_another_type_is_named(tmp_path, field):
    said = refused(written(tmp_path, {**BIG_CODE_BENCH, field: 7}))
    assert f"line 1, field {field}: 7; expected a text" in said


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ((), "holds no task"),
        (("{",), "line 1: Expecting property name"),
        (("[1]",), "line 1: a JSON list; expected an object"),
        ((HUMAN_EVAL, HUMAN_EVAL), "line 2: task_id 'Mine/0' is on line 1 already"),
        (({**HUMAN_EVAL, "entry_point": "a.b"},), "field entry_point: 'a.b'; expected the name"),
        (({**HUMAN_EVAL, "test": "assert True"},), "field test: no `def check(`"),
        (({**BIG_CODE_BENCH, "test": "pass"},), "field test: no `class TestCases`"),
        ((HUMAN_EVAL, BIG_CODE_BENCH), "line 2: field prompt of task 'BigCodeBench/0' is missing"),
    ],
)
def test_what_is_wrong_is_said_with_the_line(tmp_path, records, said):
    assert said in refused(written(tmp_path, *records))


def test_a_file_that_is_no_gzip_is_refused(tmp_path):
    path = tmp_path / "mine.jsonl.gz"
    path.write_bytes(b"plain")
    assert "Expected UTF-8 text or gzip" in refused(path)


def test_the_version_changes_with_any_task(tmp_path):
    before = formats.read(written(tmp_path, HUMAN_EVAL))
    after = formats.read(written(tmp_path, {**HUMAN_EVAL, "test": HUMAN_EVAL["test"] + "\n"}))
    assert formats.version(before) != formats.version(after)
    assert formats.version(before) == formats.version(formats.read(written(tmp_path, HUMAN_EVAL)))
