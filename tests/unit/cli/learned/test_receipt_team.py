"""`ratchet receipt` of a team: what it practised, by task."""

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from services.cli.learned import receipt as command
from services.cli.main import app
from services.core.models import ContentRole
from services.trainer import publish
from services.trainer.receipts import practice, verifying
from services.trainer.receipts.merkle import proven_root
from services.trainer.suites.formats import Task

RECIPE = {"name": "pair", "objective": "reinforcement"}


def stored(number: int) -> SimpleNamespace:
    task = Task(f"easy/{number}", "p", None, "o", "s", "t", "f", "check")
    return SimpleNamespace(task=task, task_set="easy")


TASKS = {ContentRole.TRAIN: [stored(1), stored(2)], ContentRole.HELD_OUT: [stored(3)]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A published receipt, without adapters."""
    snapshot = hashlib.sha256()
    for role, tasks in TASKS.items():
        for each in tasks:
            snapshot.update(role.encode() + bytes.fromhex(each.task.key))
    manifest = {
        "track": "pair", "round": 1, "recipe": RECIPE, "base_model": "a/base", "base_revision": None,
        "snapshot_hash": snapshot.hexdigest(), "parent": None, "created_at": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip
    counted = {stored(1).task.key: SimpleNamespace(episodes=8, solved=3, tokens=400)}

    def write(where: Path) -> None:
        practice.write(where, "round-0001", manifest, None, TASKS, practice.Practice(4, counted))

    publish.publish(tmp_path / "pair", "round-0001", write, manifest)
    return tmp_path / "pair" / "round-0001"


def test_the_summary_is_of_tasks(folder: Path) -> None:
    told = "\n".join(command.summary(*verifying.verify(folder)))
    assert "pair/round-0001: a team that practised 2 tasks, going on from the base model" in told
    assert "4 iterations, 8 episodes of which 3 were solved, 400 tokens written" in told
    assert "1 of the tasks were in none of these episodes" in told
    assert "judged by 1 held-out tasks" in told
    assert "chain: round-0001 → base" in told


def test_the_champion_of_the_recipe_is_called_so(folder: Path, tmp_path: Path) -> None:
    (folder.parent / publish.CURRENT).symlink_to(folder.name)
    recipe = tmp_path / "pair.yaml"
    recipe.write_text("base_model: a/base\nmethod: lora\n")
    environment = {"ADAPTERS_DIR": str(tmp_path), "RECIPE": str(recipe)}
    told = CliRunner().invoke(app, ["receipt", "champion"], env=environment)
    assert told.stdout.startswith("pair/round-0001: ")


def test_the_document_has_the_same(folder: Path) -> None:
    found = command.document(verifying.read(folder), None)
    assert (found["tasks"], found["episodes"], found["solved"]) == ({"train": 2, "held_out": 1}, 8, 3)


@pytest.mark.parametrize(
    ("pattern", "names"), [("easy/3", ["easy/3"]), ("easy/*", ["easy/1", "easy/2", "easy/3"])]
)
def test_tasks_are_found_by_their_names(folder: Path, pattern: str, names: list[str]) -> None:
    found = []
    verifying.read(folder, lambda item: found.append(item) if command.matches(item, pattern) else None)
    assert [item.name for item in found] == names


def test_a_task_can_be_proven(folder: Path) -> None:
    """To be in the receipt, without the others."""
    receipt = verifying.read(folder)
    found = command.proof(receipt, stored(2).task.key)
    beside = [bytes.fromhex(digest) for digest in found["beside"]]
    root = proven_root(found["line"].encode(), found["index"], found["size"], beside)
    assert root is not None
    assert root.hex() == receipt.root
