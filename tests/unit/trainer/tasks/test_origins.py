"""Which sets there are."""

import json

import pytest

from services.core.errors import ConfigurationError
from services.trainer.tasks import origins
from tests.unit.trainer.tasks.test_reading import HUMAN_EVAL, written


def record(number):
    return HUMAN_EVAL | {
        "task_id": f"Mine/{number}",
        "prompt": f'def f{number}(x):\n    """{number} {number}."""\n',
    }


def test_easy_is_always_there_also_without_a_folder(tmp_path):
    assert list(origins.origins(tmp_path / "none")) == ["easy"]


def test_files_of_a_name_are_one_set_with_the_splits_that_they_say(tmp_path):
    for number, name in enumerate(("mine.train.jsonl", "mine.test.jsonl.gz", "mine.validation.jsonl")):
        written(tmp_path / name, record(number))
    found = {each.task.name: each.split for each in origins.origins(tmp_path)["mine"].read()}
    assert found == {"Mine/0": "train", "Mine/1": "test", "Mine/2": "validation"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jsonl", ("a", None)),
        ("a.train.jsonl.gz", ("a", "train")),
        ("v0.1.4.jsonl", ("v0.1.4", None)),
        ("v0.1.4.test.jsonl", ("v0.1.4", "test")),
        ("train.jsonl", ("train", None)),
    ],
)
def test_what_a_files_name_says(tmp_path, name, expected):
    assert origins.named(tmp_path / name) == expected


@pytest.mark.parametrize("name", ["check.jsonl", "my set.jsonl", ".jsonl", "ü.jsonl"])
def test_a_name_that_cannot_be_is_refused(tmp_path, name):
    with pytest.raises(ConfigurationError, match="cannot be the name of a task set"):
        origins.named(tmp_path / name)


@pytest.mark.parametrize(
    "names", [("a.jsonl", "a.train.jsonl"), ("a.jsonl", "a.jsonl.gz"), ("a.train.jsonl", "a.train.jsonl.gz")]
)
def test_two_ways_to_split_a_set_contradict_each_other(tmp_path, names):
    for number, name in enumerate(names):
        written(tmp_path / name, record(number))
    with pytest.raises(ConfigurationError, match="are one task set"):
        origins.origins(tmp_path)


def test_a_file_wins_over_the_built_in_set_of_its_name(tmp_path):
    written(tmp_path / "easy.train.jsonl", record(1))
    assert len(origins.origins(tmp_path)["easy"].read()) == 1


def test_the_state_is_another_when_a_file_is(tmp_path):
    path = written(tmp_path / "mine.jsonl", record(1))
    before = origins.origins(tmp_path)["mine"].state
    assert origins.origins(tmp_path)["mine"].state == before
    path.write_text(f"{json.dumps(record(1))}\n{json.dumps(record(2))}\n")
    assert origins.origins(tmp_path)["mine"].state != before


def test_an_unknown_set_is_named_with_the_nearest_and_where_files_are_looked_for(tmp_path):
    with pytest.raises(
        ConfigurationError, match=r"'eesy', the nearest is easy.*TASKS_DIR.*eesy\.test\.jsonl"
    ):
        origins.check(tmp_path, ["eesy"])
