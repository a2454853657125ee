"""A round that is judged by more than its own code: a suite the gate looks at, and others for people."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from services.core.db import Database
from tests import tiny_model as tiny
from tests.integration.trainer.conftest import Trainer, standard_library
from tests.integration.trainer.test_round import closed, rows, wait_for

FUNCTIONS = ("first", "second", "third", "fourth", "fifth", "sixth")


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    """Six tasks in HumanEval's format."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    tasks = [
        {
            "task_id": f"Toy/{number}",
            "prompt": f'def {name}(values):\n    """Give item {number} of the values, counted from 0."""\n',
            "entry_point": name,
            "canonical_solution": f"    return values[{number}]\n",
            "test": f"def check(candidate):\n    assert candidate(list(range(9))) == {number}\n",
        }
        for number, name in enumerate(FUNCTIONS)
    ]
    (folder / "toy.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return folder


@pytest.fixture
def recipe_file(tiny_model: Path, tmp_path: Path) -> Path:
    path = tiny.recipe(tmp_path, tiny_model)
    text = path.read_text().replace("general_suite: null\ncompletion_items: 0\n", "")
    added = "general_suite: toy-loss\ngeneral_margin: 0.9\nsuites: [toy]\ncompletion_items: 6\n"
    path.write_text(text + added)
    return path


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_round_is_judged_by_its_suites_too(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database, benchmarks: Path
) -> None:
    """Base and candidate are measured on every suite, the gate says what it saw, and the manifest has it."""
    store(standard_library(60))
    trainer.start(BENCHMARKS_DIR=str(benchmarks), ALLOW_UNSANDBOXED="false")
    (round_,) = wait_for(lambda: closed(database), 200)
    reports = rows(
        database, "SELECT suite, subject, items, figures FROM suite_reports ORDER BY suite, subject"
    )
    assert [(each.suite, each.subject, each.items) for each in reports] == [
        ("completion", "base", 6), ("completion", "candidate", 6),
        ("toy", "base", 6), ("toy", "candidate", 6),
        ("toy-loss", "base", 6), ("toy-loss", "candidate", 6),
    ]  # fmt: skip
    figures = {(each.suite, each.subject): each.figures for each in reports}
    assert {"exact_match", "edit_similarity"} <= set(figures["completion", "base"])
    assert figures["toy", "base"]["pass@1"] == 0
    assert figures["toy-loss", "candidate"]["bits_per_byte"] != figures["toy-loss", "base"]["bits_per_byte"]
    assert round_.verdict["general"]["suite"] == "toy-loss"
    assert [check["name"] for check in round_.verdict["checks"]] == ["code", "general", "planted"]
    assert any("held out" in note for note in round_.verdict["notes"])
    assert round_.state == "promoted", round_.verdict
    manifest = json.loads((trainer.adapters / "tiny" / "current" / "manifest.json").read_text())
    assert set(manifest["metrics"]["assessments"]["candidate"]) == {"code", "toy-loss", "toy", "completion"}


def test_a_suite_that_is_not_there_is_said_before_anything_is_loaded(
    trainer: Trainer, store: Callable[[list[str]], None], tmp_path: Path
) -> None:
    """With the nearest one there is."""
    store(standard_library(30))
    trainer.start(BENCHMARKS_DIR=str(tmp_path / "none"))
    wait_for(lambda: "there is no suite 'toy-loss'" in trainer.log.read_text())
