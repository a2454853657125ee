"""A whole round with a tiny model: daemon, torchrun child, ledger, published adapter."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from services.core.db import Database
from services.trainer import publish
from tests.integration.trainer.conftest import Trainer, standard_library

ROUND_TIMEOUT = 100.0  # seconds


def rows(database: Database, statement: str) -> list[Any]:
    with database.transaction() as tx:
        tx._cursor.execute(statement)
        return list(tx._cursor.fetchall())


def wait_for(condition: Callable[[], Any], seconds: float = ROUND_TIMEOUT) -> Any:
    """The condition's first true value; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} s")


def closed(database: Database) -> list[Any]:
    return rows(database, "SELECT * FROM rounds WHERE state <> 'open' ORDER BY id")


def test_a_round_trains_promotes_and_publishes(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database
) -> None:
    """Enough new code starts a round; its adapter is promoted, whole, recorded and behind `current`."""
    store(standard_library(60))
    trainer.start()
    (round_,) = wait_for(lambda: closed(database))
    assert round_.state == "promoted", round_.verdict
    current = trainer.adapters / "tiny" / "current"
    wait_for(current.is_symlink)
    assert current.readlink() == Path("round-0001")
    manifest = publish.verify(current)
    assert manifest["snapshot_hash"] == round_.snapshot_hash
    assert {"adapter_config.json", "adapter_model.safetensors", "tokenizer.json"} <= set(manifest["files"])
    assert round_.verdict["bits_per_byte"]["candidate"] < round_.verdict["bits_per_byte"]["base"]
    trained = {row.content_id for row in rows(database, "SELECT content_id FROM trained")}
    assert trained == {
        row.content_id for row in rows(database, "SELECT content_id FROM round_contents WHERE role = 'train'")
    }
    assert json.loads((current / "adapter_config.json").read_text())["r"] == 8
    samples = rows(database, "SELECT * FROM round_samples")
    assert len(samples) == 8
    assert all(any(run.get("learned") for run in sample.runs) for sample in samples)
    log = [row.line for row in wait_for(lambda: rows(database, "SELECT line FROM round_log ORDER BY id"))]
    assert log[0] == "round-0001 of tiny, attempt 1"
    assert any(line.startswith("train step ") for line in log)


def test_a_second_round_goes_on_from_the_champion(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database
) -> None:
    """One adapter, of the same rank, judged against its parent; the learning rate warms up anew."""
    texts = standard_library(100)
    store(texts[:50])
    trainer.start()
    (first,) = wait_for(lambda: closed(database))
    assert first.state == "promoted", first.verdict
    store(texts[50:])
    _, second = wait_for(lambda: len(closed(database)) > 1 and closed(database)[:2])
    assert second.verdict["against"] == "champion"
    first_bits, second_bits = (round_.verdict["bits_per_byte"] for round_ in closed(database)[:2])
    assert first_bits["champion"] is None
    assert second_bits["champion"] < second_bits["base"]
    rates = rows(
        database,
        "SELECT (metrics ->> 'learning_rate')::float8 AS rate FROM progress"
        f" WHERE round_id = {second.id} AND kind = 'train' ORDER BY step",
    )
    assert rates[0].rate < 0.005 == max(rate.rate for rate in rates)
    champion = trainer.adapters / "tiny" / "current"
    assert json.loads((champion / "adapter_config.json").read_text())["r"] == 8


def test_too_little_code_is_refused_before_training_and_without_figures(
    trainer: Trainer, store: Callable[[list[str]], None], database: Database
) -> None:
    """A dozen files leave too few to judge by: said so, nothing trained, no number made up."""
    store(standard_library(12))
    trainer.start()
    (round_,) = wait_for(lambda: closed(database))
    assert round_.state == "refused"
    assert "too few to decide by" in round_.verdict["reason"]
    assert (round_.training, round_.verdict["improvement"], round_.verdict["low"]) == (None, None, None)
