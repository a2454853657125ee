"""Forgetting and a real daemon: what is left is trained on, from the last clean ancestor."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from services.cli import environment
from services.cli.environment import Environment
from services.cli.learned.forget import Options, run
from services.cli.learned.retraining import await_rounds
from services.core.db import Database
from services.core.target import Target
from tests.integration.cli.conftest import variables
from tests.integration.trainer.conftest import Trainer, standard_library
from tests.integration.trainer.test_promotions import Life
from tests.integration.trainer.test_round import closed, rows, wait_for


@pytest.fixture
def here(target: Target, trainer: Trainer, recipe_file: Path, tmp_path: Path) -> Environment:
    named = variables(target, tmp_path / "ingest", tmp_path / "home") | {
        "ADAPTERS_DIR": str(trainer.adapters),
        "CHECKPOINTS_DIR": str(trainer.checkpoints),
        "CACHE_DIR": str(trainer.cache),
        "RECIPE": str(recipe_file),
    }
    return environment.read(named, project=tmp_path)


def test_what_is_left_is_trained_on_from_the_base(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database, here: Environment,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The champion has learned it: a daemon trains another at once, however little else is new."""
    store(standard_library(80))
    life = Life(database, trainer.adapters, "tiny")
    life.recipe = life.recipe.model_copy(update={"held_out_min": 20})
    life.round()
    life.ledger.release(life.lease)
    (taken, *_) = rows(
        database,
        "SELECT f.content_id, f.path FROM round_contents rc JOIN files f USING (content_id)"
        " WHERE rc.role = 'train' ORDER BY f.path",
    )
    options = Options(yes=True, check=False, reason="its author asked")
    assert run(here, f"repo/{taken.path}", options, as_json=True)
    assert json.loads(capsys.readouterr().out)["found"]["refuges"] == {"tiny": None}
    assert life.current is None
    left = trainer.checkpoints / "tiny" / "round-0001"
    left.mkdir(parents=True)
    trainer.start(MIN_NEW_FILES="80")  # more than are left
    await_rounds(database, ["tiny"], print)
    assert "round 2 was promoted" in capsys.readouterr().out
    first, second = closed(database)
    assert (first.state, second.state, second.parent_adapter_id) == ("promoted", "promoted", None)
    snapshot = rows(database, f"SELECT content_id FROM round_contents WHERE round_id = {second.id}")
    assert len(snapshot) > 40
    assert taken.content_id not in {row.content_id for row in snapshot}
    assert {row.round_id for row in rows(database, "SELECT round_id FROM trained")} == {second.id}
    assert wait_for(lambda: life.current) == "round-0002"
    assert not left.exists()
