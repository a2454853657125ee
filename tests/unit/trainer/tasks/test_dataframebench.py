"""The dataframebench package: read from a folder or a wheel, never imported."""

import io
import json
import sys
import unittest
import zipfile

import pytest

from services.core.errors import ConfigurationError
from services.trainer.tasks import dataframebench

STUB = '''{library_import}
from random import randint
KEYS = ["a", "b"]
def task_func(rows: list) -> dict:
    """Sums the column named x."""
'''
PROGRAM = '''import json as pd
from random import randint
import math
KEYS = ["a", "b"]
TEXT = """one
two"""

def task_func(table):
    """A table's."""
    return {"x": math.fsum(table), "lines": TEXT}

_reference_impl = task_func

def task_func(rows: list) -> dict:
    """As the stub."""
    found = _reference_impl([row["x"] for row in rows])
    return found
'''
TEST = """import unittest
class TestCases(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(task_func([{"x": 1}, {"x": 2}]), {"x": 3.0, "lines": "one\\ntwo"})
"""
RECORD = {
    "task_id": "DFB/T1",
    "entry_point": "task_func",
    "libs": ["math"],
    "prompt": "Write it.\n\n{library_instruction}\n\n```python\n{library_import}\n```",
    "prompt_parts": {"statement": 'Sum the "x" \\ of """rows""".', "stub": STUB, "instruction": ""},
    "test_code": TEST,
    "ground_truth": {"pandas": PROGRAM, "polars": PROGRAM.replace("math.fsum", "sum")},
    "seed_id": "BigCodeBench/7",
}


@pytest.fixture
def package(tmp_path):
    data = tmp_path / "dataframebench" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    for name, count in (("train", 3), ("val", 1), ("test", 2)):
        records = [RECORD | {"task_id": f"DFB/{name}{number}"} for number in range(count)]
        (data / f"{name}.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))
    return data.parent


@pytest.fixture
def wheel(package, tmp_path):
    path = tmp_path / "dataframebench-0.1.1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        for name in dataframebench.FILES.values():
            made.write(package / "data" / name, f"dataframebench/data/{name}")
    return path


def test_a_wheel_and_every_folder_above_its_data_give_the_same(package, wheel):
    read = [dataframebench.read(each) for each in (wheel, package.parent, package, package / "data")]
    assert read[0] == read[1] == read[2] == read[3]
    assert len(read[0]) == 6


def test_its_own_splits_are_kept_and_tasks_are_grouped_by_seed(package):
    found = dataframebench.read(package)
    assert [each.split for each in found] == ["test"] * 2 + ["validation"] + ["train"] * 3
    assert {each.group for each in found} == {"BigCodeBench/7"}


def test_the_installed_package_is_found_and_not_imported(package, monkeypatch):
    monkeypatch.syspath_prepend(str(package.parent))
    assert dataframebench.installed() == package / "data"
    assert "dataframebench" not in sys.modules


def test_a_converted_reference_passes_the_test_and_what_the_stub_has_stays_outside():
    record = dataframebench.record(RECORD, "pandas")
    program = (record["code_prompt"] + record["canonical_solution"]).replace("import pandas as pd", "")
    names = {"__name__": "program"}
    exec(f"{program}\n{record['test']}", names)
    loaded = unittest.defaultTestLoader.loadTestsFromTestCase(names["TestCases"])
    assert unittest.TextTestRunner(stream=io.StringIO()).run(loaded).wasSuccessful()
    assert "randint" not in record["canonical_solution"]
    assert "    import math" in record["canonical_solution"]


def test_the_prompt_holds_the_whole_statement_and_the_library_asked_for():
    record = dataframebench.record(RECORD, "polars")
    names: dict = {}
    exec(record["complete_prompt"].replace("import polars as pl", "") + "    pass\n", names)
    assert names["task_func"].__doc__.strip() == 'Sum the "x" \\ of """rows""".'
    assert "Use polars" in record["instruct_prompt"]
    assert "import polars as pl" in record["instruct_prompt"]
    assert "sum(table)" in record["canonical_solution"]


@pytest.mark.parametrize("content", ["{}\n", "[]\n", "{\n", json.dumps(RECORD | {"entry_point": "other"})])
def test_damaged_data_are_named_with_the_line(package, content):
    (package / "data" / "train.jsonl").write_text(content)
    with pytest.raises(ConfigurationError, match=r"train\.jsonl, line 1"):
        dataframebench.records(package, "train")


def test_a_folder_or_wheel_without_the_data_says_what_was_expected(tmp_path, package):
    (tmp_path / "other.whl").write_bytes(b"no zip")
    for where in (tmp_path / "nowhere", tmp_path / "other.whl"):
        with pytest.raises(ConfigurationError, match="expected the wheel dataframebench"):
            dataframebench.records(where, "train")
