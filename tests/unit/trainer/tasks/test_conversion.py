"""From a benchmark's records to a file of tasks."""

import gzip
import json

import pytest

from services.core.errors import ConfigurationError
from services.trainer.suites import formats
from services.trainer.tasks import conversion, inputs
from services.trainer.tasks.conversion import Wanted
from services.trainer.tasks.splits import split_of

BASE = {
    "complete_prompt": 'import math\ndef task_func(x):\n    """Its root."""',
    "instruct_prompt": "Write a function that gives the root of x.",
    "canonical_solution": "    return math.sqrt(x)",
    "code_prompt": "import math\ndef task_func(x):",
    "test": "import unittest\nclass TestCases(unittest.TestCase):\n"
    "    def test_one(self):\n        self.assertEqual(1, 1)\n    def test_two(self):\n        self.fail()\n",
    "entry_point": "task_func",
    "libs": "['math', 'numpy']",
    "doc_struct": "{}",
    "_index": 3,
}
RECORDS = [
    BASE
    | {
        "task_id": f"BigCodeBench/{number}",
        "complete_prompt": BASE["complete_prompt"].replace("Its root", " ".join([f"word{number}"] * 12)),
        "instruct_prompt": f"Root number {number} of {number * 7}.",
    }
    for number in range(60)
]


def places(records):
    return [(f"file, line {number}", fields) for number, fields in enumerate(records, 1)]


def names(converted):
    return [task.name for task in converted.tasks]


def test_train_and_test_are_told_by_the_hash_of_the_name_and_are_all_there_is():
    train, test = (conversion.convert(places(RECORDS), Wanted(split), ()) for split in ("train", "test"))
    assert set(names(train)) | set(names(test)) == {each["task_id"] for each in RECORDS}
    assert all(split_of(name) == "test" for name in names(test))
    assert all(split_of(name) == "train" for name in names(train))
    assert (train.elsewhere, test.elsewhere) == (len(test.tasks), len(train.tasks))


def test_so_many_are_the_first_ones_or_drawn_by_a_seed_and_always_the_same():
    first = names(conversion.convert(places(RECORDS), Wanted(None, 5), ()))
    drawn = names(conversion.convert(places(RECORDS), Wanted(None, 5, 1), ()))
    assert first == [each["task_id"] for each in RECORDS[:5]]
    assert drawn == names(conversion.convert(places(RECORDS), Wanted(None, 5, 1), ()))
    assert drawn != first


def test_the_file_is_read_back_as_the_same_tasks(tmp_path):
    converted = conversion.convert(places(RECORDS), Wanted("train"), ())
    for name in ("a.train.jsonl", "a.train.jsonl.gz"):
        conversion.write(converted, tmp_path / "new" / name, "train")
        assert formats.read(tmp_path / "new" / name) == list(converted.tasks)
    assert not list((tmp_path / "new").glob(".*"))


def test_the_same_input_makes_the_same_bytes(tmp_path):
    converted = conversion.convert(places(RECORDS), Wanted(), ())
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        conversion.write(converted, tmp_path / name, None)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_what_is_no_task_is_dropped_and_said_why():
    bad = [
        BASE
        | {
            "task_id": "none",
            "test": "import unittest\nclass TestCases:\n    def test(self):\n        pass\n",
        },
        BASE | {"task_id": "cut", "canonical_solution": None},
        RECORDS[0],
    ]
    converted = conversion.convert(places([*RECORDS, *bad]), Wanted(), ())
    assert converted.dropped == {
        "none": "its test asserts nothing",
        "cut": "field canonical_solution: None; expected a text that is not empty",
        "BigCodeBench/0 (file, line 63)": "task_id BigCodeBench/0 is at file, line 1 already",
    }


def test_statistics_count_tasks_libraries_lengths_and_tests():
    found = conversion.statistics(conversion.convert(places(RECORDS), Wanted(), ()))
    assert found["tasks"] == 60
    assert found["libraries"] == {"math": 60, "numpy": 60}
    assert found["tests_per_task"] == {"least": 2, "median": 2, "most": 2}
    assert found["prompt_characters"]["least"] == len("Root number 0 of 0.")
    assert json.loads(json.dumps(found)) == found


def test_a_name_that_says_another_split_is_refused(tmp_path):
    converted = conversion.convert(places(RECORDS), Wanted("test"), ())
    with pytest.raises(ConfigurationError, match="of the train split, and --split is test"):
        conversion.write(converted, tmp_path / "a.train.jsonl", "test")
    assert list(tmp_path.iterdir()) == []


def test_nothing_left_and_another_format_are_errors():
    with pytest.raises(ConfigurationError, match="no task is left of 0"):
        conversion.convert([], Wanted(), ())
    with pytest.raises(ConfigurationError, match="needs no conversion"):
        conversion.convert([("x", {"task_id": "HumanEval/0", "prompt": "def f():"})], Wanted(), ())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(RECORDS)),
        ("a.json", json.dumps({"data": RECORDS})),
        ("a.json", json.dumps({each["task_id"]: each for each in RECORDS})),
        ("a.json", "\n".join(map(json.dumps, RECORDS))),
        ("a.jsonl", "\n".join(map(json.dumps, RECORDS))),
        ("a.jsonl.gz", "\n".join(map(json.dumps, RECORDS))),
        ("a.json.gz", json.dumps(RECORDS)),
    ],
)
def test_every_form_that_the_benchmark_is_passed_around_in_is_read(tmp_path, name, content):
    data = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert [fields for _, fields in inputs.read(tmp_path / name)] == RECORDS


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"", "ends in none of"),
        ("a.json", b"{", "expected a JSON list"),
        ("a.json", b"3", "expected a list of tasks"),
        ("a.json", b"[3]", "record 1: a JSON int"),
        ("a.json.gz", b"no gzip", "cannot be read"),
        ("a.parquet", b"PAR1", "pyarrow|Parquet"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_what_was_expected(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=says):
        inputs.read(tmp_path / name)
