"""How a round begins, or is taken up again; inside the transaction that holds the lease."""

from collections.abc import Collection
from typing import Any

from services.core.db import Transaction, as_json
from services.core.models import ContentRole
from services.trainer import solutions
from services.trainer.ledger import adapters
from services.trainer.ledger.values import Round
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import section
from services.trainer.selection import snapshots
from services.trainer.selection.held_out import HeldOut
from services.trainer.selection.snapshots import Selection
from services.trainer.tasks import store as task_store

OLDER = {"planted_secrets": 0}  # what a round that was opened by an older version does


def resume(tx: Transaction, row: Any) -> Round:
    """The open round's row as a round, in its next attempt."""
    attempt = tx.value("start_attempt", round_id=row.id)
    parent = adapters.adapter(tx, row.parent_adapter_id)
    begun_with = Recipe.model_validate({**OLDER, **row.recipe})
    held_out = None if row.held_out is None else HeldOut(**row.held_out)
    return Round(row.id, row.number, attempt, parent, row.snapshot_hash, begun_with, held_out)


def begin(
    tx: Transaction,
    track: str,
    recipe: Recipe,
    threshold: int,
    max_dataset_size: int,
    fewest: int,
    barred: Collection[bytes],
) -> Round | None:
    """A new round with its snapshot; None when there is nothing to train on: `Ledger.open_or_resume`."""
    tx.execute("settle_trained", track=track)  # a move by hand may have been cut short
    offered = solutions.offered(tx, track, recipe, max_dataset_size, barred)
    most = solutions.room(recipe, max_dataset_size, len(offered))
    choice = Selection(tx, track, recipe, threshold, most).choice()
    if not choice.is_worth_a_round(min(fewest, most)):
        return None
    learned = sum(len(choice.of(role)) for role in (ContentRole.TRAIN, ContentRole.REPLAY))
    solved = solutions.share(offered, recipe, learned)
    snapshot_hash = solutions.snapshot_hash(choice.digest(), solved)
    opened = _insert(tx, track, recipe, snapshot_hash, choice.held_out)
    snapshots.store(tx, track, opened.round_id, choice)
    solutions.store_snapshot(tx, opened.round_id, solved)
    return opened


def begin_practice(tx: Transaction, track: str, recipe: Recipe, fewest: int) -> Round | None:
    """A new round with its tasks, with others of the set each time where it has more than a round takes."""
    asked = section(recipe)
    if task_store.count_new(tx, track, asked.tasks, fewest) < fewest:
        return None
    number = tx.value("next_number", track=track)
    choice = task_store.choose(tx, track, asked, seed=recipe.seed + number)
    opened = _insert(tx, track, recipe, choice.hash, None)
    task_store.store_snapshot(tx, opened.round_id, choice)
    return opened


def _insert(
    tx: Transaction, track: str, recipe: Recipe, snapshot_hash: str, held_out: HeldOut | None
) -> Round:
    parent = adapters.champion(tx, track)
    row = tx.one(
        "insert_round",
        track=track,
        recipe=as_json(recipe.model_dump(mode="json")),
        parent=None if parent is None else parent.adapter_id,
        snapshot_hash=snapshot_hash,
        held_out=None if held_out is None else as_json(held_out.as_json()),
    )
    return Round(row.id, row.number, 1, parent, snapshot_hash, recipe, held_out)
