"""`ratchet tasks` and `ratchet convert`, without a sandbox or the hub."""

import json

import pytest
from typer.testing import CliRunner

from services.cli.main import app
from services.cli.tasks import sets as command
from services.core.errors import SandboxError
from services.trainer.tasks import hub
from tests.unit.trainer.tasks.test_conversion import RECORDS
from tests.unit.trainer.tasks.test_dataframebench import package, wheel
from tests.unit.trainer.tasks.test_reading import HUMAN_EVAL, written

__all__ = ["package", "wheel"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("TASKS_DIR", "CACHE_DIR", "BENCHMARKS_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    (tmp_path / "tasks_dir").mkdir()
    return tmp_path / "tasks_dir"


def ratchet(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def documented(*arguments):
    result = ratchet(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_set_is_listed_with_its_splits_and_what_is_left_out(folder):
    written(folder / "mine.train.jsonl", HUMAN_EVAL, HUMAN_EVAL | {"task_id": "Mine/1", "test": "no"})
    sets = {each["set"]: each for each in documented("tasks")["sets"]}
    assert sets["mine"] == {
        "set": "mine", "source": "mine.train.jsonl", "tasks": 2, "train": 1, "validation": 0, "test": 0,
        "excluded": {"field test: no `def check(`; HumanEval's format has one": 1}, "untried": 1,
        "problem": None,
    }  # fmt: skip
    assert sets["easy"]["train"] > 200
    assert "ratchet tasks check" in ratchet("tasks").stdout


def test_a_set_that_cannot_be_read_is_listed_with_the_reason_beside_the_others(folder):
    (folder / "broken.jsonl").write_text("{")
    sets = {each["set"]: each for each in documented("tasks")["sets"]}
    assert "broken.jsonl, line 1" in sets["broken"]["problem"]
    assert "broken.jsonl, line 1" in ratchet("tasks").stdout


def test_the_tasks_of_a_set_and_those_left_out_alone(folder):
    written(folder / "mine.train.jsonl", HUMAN_EVAL, HUMAN_EVAL | {"task_id": "Mine/1", "test": "no"})
    assert [each["name"] for each in documented("tasks", "mine")["tasks"]] == ["Mine/0", "Mine/1"]
    assert [each["name"] for each in documented("tasks", "mine", "--excluded")["tasks"]] == ["Mine/1"]
    assert "train       Mine/1  left out: field test" in ratchet("tasks", "mine").stdout


def test_an_unknown_set_is_one_line_and_status_1(folder):
    result = ratchet("tasks", "esy")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("ratchet: there is no task set 'esy', the nearest is easy")


def test_a_second_word_is_for_check_alone(folder):
    assert ratchet("tasks", "easy", "mine").exit_code == 2


def test_check_without_a_sandbox_is_one_line_and_status_1(folder, monkeypatch):
    def none(environment):
        raise SandboxError("no sandbox answers")

    monkeypatch.setattr(command, "_sandbox", none)
    written(folder / "mine.train.jsonl", HUMAN_EVAL)
    result = ratchet("tasks", "check", "mine")
    assert (result.exit_code, result.stderr) == (1, "ratchet: no sandbox answers\n")


def test_a_file_of_bigcodebench_becomes_two_sets_with_the_seeds_own_options(folder, tmp_path):
    (tmp_path / "bcb.json").write_text(json.dumps(RECORDS))
    kept = 0
    for split in ("train", "test"):
        found = documented(
            "convert", "bigcodebench", "--input", tmp_path / "bcb.json",
            "--output", folder / f"b.{split}.jsonl",
            "--max_samples", 1000, "--dataset_type", "regular", "--split", split,
        )  # fmt: skip
        assert found["split"] == split
        kept += found["tasks"]
    assert kept == len(RECORDS)
    sets = {each["set"]: each for each in documented("tasks")["sets"]}
    assert sets["b"]["train"] + sets["b"]["test"] == len(RECORDS)


def test_without_an_output_it_goes_where_sets_are_looked_for(folder, tmp_path):
    (tmp_path / "bcb.json").write_text(json.dumps(RECORDS))
    result = ratchet("convert", "bigcodebench", "--input", tmp_path / "bcb.json")
    assert result.exit_code == 0, result.output
    assert "tests a task" in result.stdout
    assert [path.name for path in folder.iterdir()] == ["bigcodebench.jsonl"]


def test_from_the_hub_hard_is_a_data_set_of_its_own_and_the_token_goes_along(folder, monkeypatch):
    asked = []

    def fetch(repo, version, *, token, cache):
        asked.append((repo, version, token))
        records = [(f"row {number}", fields) for number, fields in enumerate(RECORDS)]
        return hub.Fetched(records, repo)

    monkeypatch.setattr(hub, "fetch", fetch)
    monkeypatch.setenv("HF_TOKEN", "hf_of-mine")
    found = documented("convert", "bigcodebench", "--dataset-type", "hard", "--version", "v0.1.4")
    assert found["output"].endswith("/bigcodebench-hard.jsonl")
    assert asked == [("bigcode/bigcodebench-hard", "v0.1.4", "hf_of-mine")]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--input", "nowhere.json"], "there is no such file"),
        (["--input", "{file}", "--dataset-type", "hard"], "does not say which of its tasks are hard"),
        (["--input", "{file}", "--split", "test", "--output", "x.train.jsonl"], "name them alike"),
    ],
)
def test_what_cannot_be_converted_is_one_line_and_leaves_nothing(folder, tmp_path, arguments, says):
    (tmp_path / "bcb.json").write_text(json.dumps(RECORDS))
    result = ratchet(
        "convert", "bigcodebench", *(each.format(file=tmp_path / "bcb.json") for each in arguments)
    )
    assert result.exit_code == 1
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(folder.iterdir()) == []


def test_a_wheel_of_dataframebench_becomes_a_set_with_its_own_splits(folder, wheel, package, monkeypatch):
    for split in ("validation", "test"):
        documented("convert", "dataframebench", "--input", wheel, "--split", split)
    found = documented("convert", "dataframebench", "--input", package)
    assert "CC-BY-4.0" in found["source"]
    assert (found["tasks"], found["libraries"]) == (3, {"pandas": 3, "math": 3})
    assert sorted(path.name for path in folder.iterdir()) == [
        "dataframebench.test.jsonl", "dataframebench.train.jsonl", "dataframebench.validation.jsonl",
    ]  # fmt: skip


def test_dataframebench_that_is_nowhere_says_how_to_fetch_it(folder):
    result = ratchet("convert", "dataframebench")
    assert result.exit_code == 1
    assert "pip download dataframebench==0.1.1" in result.stderr
