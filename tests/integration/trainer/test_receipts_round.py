"""Two whole rounds with a tiny model, in this process: each publishes a receipt of what it really did."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.core.db import Database
from services.core.models import ContentRole
from services.core.settings import Settings
from services.trainer import rounds
from services.trainer.context import Books, Context
from services.trainer.heartbeat import Heart
from services.trainer.interruption import Interruption
from services.trainer.ledger import Ledger
from services.trainer.receipts import verifying
from services.trainer.receipts.lines import LEARNED, Content
from services.trainer.recipes import files as recipe_files
from tests.integration.trainer.conftest import standard_library
from tests.integration.trainer.test_receipts import told, which
from tests.integration.trainer.test_recipes_run import ALONE, interruption
from tests.integration.trainer.test_round import rows

__all__ = ["interruption"]


@pytest.fixture
def always_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested is not the gate."""
    judge: Any = rounds.judge
    monkeypatch.setattr(rounds, "judge", lambda *given: dataclasses.replace(judge(*given), promoted=True))


@pytest.mark.usefixtures("always_better")
def test_two_rounds_publish_receipts_that_verify_and_agree_with_the_ledger(
    store: Callable[[list[str]], None], database: Database, recipe_file: Path, tmp_path: Path,
    interruption: Interruption,
) -> None:  # fmt: skip
    """All that was trained on is counted to a content: as many tokens as the loop says it took."""
    settings = Settings(
        adapters_dir=tmp_path / "adapters", checkpoints_dir=tmp_path / "checkpoints",
        logs_dir=tmp_path / "logs", cache_dir=tmp_path / "cache", wandb_mode="disabled",
    )  # fmt: skip
    at_the_end = {
        "eval_steps": 10_000,
        "epochs": 0.75,
        "replay_share": 0.2,
    }  # evaluated once: that is the best
    recipe = recipe_files.load(str(recipe_file)).model_copy(update=at_the_end)
    ledger = Ledger(database, recipe.name)
    lease = ledger.take(recipe, "test")
    assert lease is not None
    context = Context(settings, recipe, Books(ledger, lease), Heart(None), interruption, ALONE)
    texts = standard_library(80)
    for most in (slice(40), slice(40, None)):
        store(texts[most])
        rounds.run(context)

    closed = rows(database, "SELECT * FROM rounds ORDER BY id")
    assert [round_.state for round_ in closed] == ["promoted", "promoted"]
    for round_ in closed:
        found: list[Content] = []
        receipt, chain = verifying.verify(context.track_dir / f"round-{round_.number:04}", found.append)
        recorded = rows(
            database,
            "SELECT rc.role, encode(c.sha256, 'hex') AS sha256, e.seen, e.tokens FROM round_contents rc"
            " JOIN contents c ON c.id = rc.content_id LEFT JOIN exposures e USING (round_id, content_id)"
            f" WHERE rc.round_id = {round_.id}",
        )
        assert {(each.role, each.sha256, each.seen, each.tokens) for each in found} == {
            (ContentRole(row.role), row.sha256, row.seen, row.tokens) for row in recorded
        }
        assert receipt.header.exposure == "counted"
        assert receipt.added is None
        assert (receipt.header.steps, receipt.tokens) == (round_.training["steps"], round_.training["tokens"])
        assert {each.role for each in found if each.seen} <= set(LEARNED)
        assert all(1 <= first <= last <= each.lines for each in found for first, last in each.spans or ())
        assert len(chain.links) == round_.number + 1
        assert chain.open_because is None
    assert receipt.contents[ContentRole.REPLAY]
    assert receipt.seen < sum(each.samples or 0 for each in found)  # three quarters of an epoch
    first, *_ = rows(
        database,
        "SELECT encode(c.sha256, 'hex') AS sha256 FROM exposures e JOIN contents c ON c.id = e.content_id"
        " WHERE e.seen > 0 AND e.round_id = 1"
        " AND NOT EXISTS (SELECT FROM round_contents WHERE round_id = 2 AND content_id = e.content_id)",
    )
    assert told(which(database, first.sha256, tmp_path)) == [
        ("tiny/round-0001", "directly", False), ("tiny/round-0002", "inherited", True)
    ]  # fmt: skip
