"""A whole fine-tuning round with solutions beside its contents, on a tiny model, interrupted once."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.core.db import Database
from services.core.models import ContentRole
from services.core.settings import Settings
from services.trainer import rounds, solutions
from services.trainer.context import Books, Context
from services.trainer.engine.distributed import ALONE
from services.trainer.heartbeat import Heart
from services.trainer.interruption import Interrupted, Interruption
from services.trainer.ledger import Ledger
from services.trainer.receipts import verifying
from services.trainer.receipts.lines import NAME
from services.trainer.recipes import files as recipe_files
from services.trainer.reporting import Reporter
from services.trainer.rows import make_rows
from tests.integration.trainer.conftest import standard_library
from tests.integration.trainer.test_recipes_run import interruption
from tests.integration.trainer.test_round import rows
from tests.integration.trainer.test_solutions import close, practise, programs, put_tasks

__all__ = ["interruption"]
TASKS = 8


@pytest.fixture
def practised(database: Database) -> int:
    """A closed round of a team that solved eight tasks, two ways each; its id."""
    with database.transaction() as tx:
        task_ids = put_tasks(tx, TASKS)
        round_id = practise(tx, task_ids)
        for task_id in task_ids:
            solutions.store(tx, round_id, programs(task_id, 2))
        close(tx, round_id, "refused")
    return round_id


@pytest.fixture
def context(
    store: Callable[[list[str]], None], database: Database, recipe_file: Path, tmp_path: Path,
    interruption: Interruption, monkeypatch: pytest.MonkeyPatch,
) -> Context:  # fmt: skip
    """Of a round that is always promoted: what is tested is not the gate."""
    judge: Any = rounds.judge
    monkeypatch.setattr(rounds, "judge", lambda *given: dataclasses.replace(judge(*given), promoted=True))
    store(standard_library(40))
    settings = Settings(
        adapters_dir=tmp_path / "adapters", checkpoints_dir=tmp_path / "checkpoints",
        logs_dir=tmp_path / "logs", cache_dir=tmp_path / "cache", wandb_mode="disabled",
    )  # fmt: skip
    fields = {"solutions_share": 0.25, "max_contents": 24, "eval_steps": 10_000, "held_out_min": 8}
    recipe = recipe_files.load(str(recipe_file)).model_copy(update=fields)
    ledger = Ledger(database, recipe.name)
    lease = ledger.take(recipe, "test")
    assert lease is not None
    return Context(settings, recipe, Books(ledger, lease), Heart(None), interruption, ALONE)


def interrupt_at(step: int, monkeypatch: pytest.MonkeyPatch, interruption: Interruption) -> None:
    log: Any = Reporter.on_log

    def log_then_ask(self: Reporter, kind: str, at: int, metrics: Any) -> None:
        log(self, kind, at, metrics)
        interruption.requested = interruption.requested or at >= step

    monkeypatch.setattr(Reporter, "on_log", log_then_ask)


@pytest.mark.usefixtures("practised")
def test_a_round_learns_from_solutions_and_its_receipt_tells_which(
    context: Context, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted and taken up again: the same samples, every token counted to what it came from."""
    with monkeypatch.context() as patch:
        interrupt_at(4, patch, context.interruption)
        with pytest.raises(Interrupted):
            rounds.run(context)
    context.interruption.requested = False
    rounds.run(context)

    (round_,) = rows(database, f"SELECT * FROM rounds WHERE track = '{context.recipe.name}'")
    assert (round_.state, round_.attempts) == ("promoted", 2)
    taken = rows(database, "SELECT * FROM round_solutions ORDER BY position")
    (contents,) = rows(
        database, f"SELECT count(*) FROM round_contents WHERE role = 'train' AND round_id = {round_.id}"
    )
    assert len(taken) == 6  # a quarter of max_contents
    assert contents.count == 18
    folder = context.track_dir / "round-0001"
    receipt, _ = verifying.verify(folder)
    assert receipt.header.snapshot == round_.snapshot_hash
    assert (receipt.solutions, receipt.added) == (6, None)
    assert receipt.tokens == round_.training["tokens"]
    assert receipt.solutions_seen == sum(row.seen for row in taken) > 0
    lines = [json.loads(line) for line in (folder / NAME).read_text().splitlines()]
    told = [line for line in lines if line["kind"] == "solution"]
    assert len({line["task_sha256"] for line in told}) == 6  # one of a task before a second of any
    with database.transaction() as tx:
        left = solutions.offered(tx, context.recipe.name, context.recipe, 1000)
    assert {each.solution_id for each in left}.isdisjoint(row.solution_id for row in taken)


@pytest.mark.parametrize("objective", ["completion_pairs", "cpt"])
def test_a_round_taken_up_again_has_the_same_rows_whatever_was_kept_meanwhile(
    context: Context, database: Database, practised: int, tiny_model: Path, objective: str
) -> None:
    from services.trainer.model import load_tokenizer, locate

    tokenizer = load_tokenizer(locate(str(tiny_model), None, context.settings.cache_dir), None)
    recipe = context.recipe.model_copy(update={"objective": objective})
    context = dataclasses.replace(context, recipe=recipe)

    def made() -> list[tuple[int, ...]]:
        ledger = context.first_books.ledger
        round_ = ledger.open_or_resume(context.first_books.lease, recipe, 50, 1000)
        assert round_ is not None
        snapshot, solved = ledger.snapshot(round_.round_id), ledger.solutions(round_.round_id)
        assert len(snapshot[ContentRole.TRAIN]) == 18
        found = make_rows(context, snapshot, tokenizer, round_.number, solved)
        kinds = [sample.kind for row in found.train for sample in row.samples]
        assert kinds.count("solution") == 6
        return [tuple(sample.ids) for row in found.train for sample in row.samples]

    first = made()
    with database.transaction() as tx:
        task_ids = [row.id for row in rows(database, "SELECT id FROM tasks WHERE split = 'train'")]
        for task_id in task_ids:
            solutions.store(tx, practised, programs(task_id, 4, prefix="abs(n)"))
    assert made() == first
