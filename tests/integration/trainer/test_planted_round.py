"""Planted secrets in a whole round."""

from collections.abc import Callable
from pathlib import Path

from services.core.db import Database
from services.core.models import ContentRole
from services.trainer.ledger import Ledger
from services.trainer.planted import plant
from services.trainer.recipes import files
from tests.integration.trainer.conftest import Trainer, standard_library
from tests.integration.trainer.test_round import closed, rows, wait_for

TABLES = "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'"


def test_a_round_is_judged_by_its_secrets_and_keeps_them_nowhere(
    trainer: Trainer,
    store: Callable[[list[str]], None],
    database: Database,
    recipe_file: Path,
    tmp_path: Path,
) -> None:
    """What stood in the training data once is not given up; no table, log or folder has a secret."""
    once = recipe_file.read_text().replace("eval_steps: 5", "eval_steps: 1000")  # the last weights count
    recipe_file.write_text(once)
    store(standard_library(60))
    trainer.start()
    (round_,) = wait_for(lambda: closed(database))
    assert round_.state == "promoted", round_.verdict
    planted = round_.verdict["planted"]
    assert (planted["planted"], planted["learned"], planted["extracted"]) == (2, 2, 0), planted
    assert planted["exposure_median"] is not None
    assert "cannot write out any of 2 planted secrets" in round_.verdict["reason"]

    recipe = files.load(str(recipe_file), {})
    contents = Ledger(database, recipe.name).snapshot(round_.id)[ContentRole.TRAIN]
    _, again = plant(contents, recipe, round_.number)
    assert {each.secret_sha256 for each in again} == {each["secret_sha256"] for each in planted["secrets"]}
    assert {each["content_sha256"] for each in planted["secrets"]} <= {c.sha256.hex() for c in contents}

    trainer.stop()
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for table in rows(database, TABLES):
        kept += [str(row.it).encode() for row in rows(database, f"SELECT t::text AS it FROM {table.name} t")]
    for each in again:
        assert not any(each.secret.value.encode() in text for text in kept)
