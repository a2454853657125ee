"""Files of tasks: what is read of them, and what becomes of lines that are no tasks."""

import gzip
import json

import pytest

from services.core.errors import ConfigurationError
from services.trainer.tasks import reading
from services.trainer.tasks.splits import split_of

HUMAN_EVAL = {
    "task_id": "Mine/0",
    "prompt": 'def double(x):\n    """Twice x."""\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}


def written(path, *records):
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.jsonl.gz"])
def test_a_file_in_humanevals_format_is_read_as_it_is(tmp_path, name):
    (found,) = reading.read([(written(tmp_path / name, HUMAN_EVAL), "train")])
    assert (found.task.name, found.split, found.group, found.excluded) == ("Mine/0", "train", "Mine/0", None)
    assert found.source == f"{name}, line 1"


def test_a_file_that_names_no_split_is_split_by_the_hash_of_the_group(tmp_path):
    records = [
        HUMAN_EVAL | {"task_id": f"Mine/{number}", "seed_id": f"s{number // 5}"} for number in range(200)
    ]
    found = reading.read([(written(tmp_path / "mine.jsonl", *records), None)])
    assert {each.split for each in found} == {"train", "test"}
    assert all(each.split == split_of(each.group) for each in found)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"test": None}, "test"),
        ({"test": "assert double(2) == 4"}, "no `def check("),
        ({"entry_point": "not a name"}, "entry_point"),
        ({"canonical_solution": " "}, "canonical_solution"),
        ({"prompt": "def double(x):\n    '''\0'''\n"}, "NUL"),
        ({"prompt": "def double(x):\n    '''\ud800'''\n"}, "half a character"),
    ],
)
def test_a_line_that_is_no_task_is_excluded_with_what_is_wrong_and_the_others_are_used(tmp_path, wrong, why):
    path = written(tmp_path / "mine.jsonl", HUMAN_EVAL, HUMAN_EVAL | {"task_id": "Mine/1"} | wrong)
    good, bad = reading.read([(path, "train")])
    assert good.excluded is None
    assert why in bad.excluded
    assert bad.task.name == "Mine/1"
    assert "\0" not in bad.task.prompt
    bad.task.prompt.encode()


def test_a_task_that_is_there_twice_counts_once_also_over_files(tmp_path):
    test = written(tmp_path / "mine.test.jsonl", HUMAN_EVAL)
    train = written(tmp_path / "mine.train.jsonl", HUMAN_EVAL)
    first, second = reading.read([(test, "test"), (train, "train")])
    assert first.excluded is None
    assert second.excluded == "task_id Mine/0 is at mine.test.jsonl, line 1 already"
    assert first.task.name != second.task.name


@pytest.mark.parametrize("content", [b"", b"\n", b"[1]\n", b"{\n", b"\xff\xfe"])
def test_a_file_that_is_none_of_tasks_is_named(tmp_path, content):
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"mine\.jsonl"):
        reading.read([(path, None)])
