"""The canary: what was published is tried, and rolled back when it is not what was judged."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from services.core.db import Database
from services.core.errors import CanaryError
from services.core.models import RoundState
from services.core.settings import Settings
from services.trainer import canary, canary_suite, model, publish
from services.trainer.engine.compute import Compute
from services.trainer.ledger import Ledger
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from tests.integration.trainer.conftest import Trainer, standard_library
from tests.integration.trainer.test_round import rows, wait_for


@pytest.fixture
def recipe(recipe_file: Path) -> Recipe:
    return recipe_files.load(str(recipe_file), {})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache_dir=tmp_path / "cache", postgres_password="none")


@pytest.fixture
def published(recipe: Recipe, settings: Settings, tmp_path: Path) -> Callable[..., Path]:
    """Publishes an adapter that is said to have cost so many times what it does."""

    def make(said: float = 1.0, name: str = "round-0001") -> Path:
        source = model.locate(recipe.base_model, None, settings.cache_dir)
        tokenizer = model.load_tokenizer(source)
        trained = model.for_training(model.load_base(recipe, source), recipe, None, tmp_path)
        torch.manual_seed(1)
        with torch.no_grad():
            for weights_name, weights in trained.named_parameters():
                if "lora_B" in weights_name:
                    weights.normal_(std=0.1)
        nats = [said * value for value in canary_suite.measure(Compute(trained), tokenizer, recipe)]

        def write(folder: Path) -> None:
            model.save(trained, folder, {}, tmp_path)
            tokenizer.save_pretrained(folder)

        folder = tmp_path / "adapters" / recipe.name
        manifest = {"kind": "adapter", "base_revision": None, "canary": nats}
        publish.publish(folder, name, write, {**manifest, "recipe": recipe.model_dump(mode="json")})
        return folder / name

    return make


def test_what_is_published_costs_what_the_candidate_did(
    published: Callable[..., Path], settings: Settings
) -> None:
    """Loaded afresh, to within rounding."""
    folder = published()
    manifest = publish.verify(folder)
    assert canary_suite.run(folder, manifest, settings) == pytest.approx(manifest["canary"], rel=1e-3)


def test_an_adapter_that_is_not_the_one_that_was_judged_fails(
    published: Callable[..., Path], settings: Settings
) -> None:
    """Whole files, wrong weights: what a fault in saving would do."""
    folder = published(1.1)
    with pytest.raises(CanaryError, match="before publishing: more than 2% apart"):
        canary_suite.run(folder, publish.verify(folder), settings)


def test_a_damaged_file_fails_and_a_base_that_is_gone_does_not(published: Callable[..., Path]) -> None:
    """The one is the adapter's fault."""
    folder = published()
    manifest = publish.verify(folder)
    manifest["recipe"]["base_model"] = "./gone"
    (folder / publish.MANIFEST).write_text(json.dumps(manifest))
    status, said = canary.tried(folder)
    assert (status, said["passed"]) == (canary.UNTRIED, None)
    (folder / "adapter_model.safetensors").write_bytes(b"damaged")
    status, said = canary.tried(folder)
    assert (status, said["passed"]) == (canary.FAILED, False)
    assert "changed" in said["reason"]


@pytest.mark.parametrize("found", [math.nan, math.inf, 11.0])
def test_a_loss_that_is_not_what_it_was_fails(found: float) -> None:
    canary_suite.check_losses([10.1], [10.0])
    with pytest.raises(CanaryError):
        canary_suite.check_losses([found], [10.0])


def test_one_token_over_and_over_fails_unless_the_base_does_so_too() -> None:
    """One prompt that is answered otherwise is enough."""
    stuck, free = [(7,) * 24, (3,) * 24], [(7,) * 24, (1, 2, 3)]
    canary_suite.check_outputs(free, lambda: free)
    canary_suite.check_outputs(stuck, lambda: stuck)
    with pytest.raises(CanaryError, match="one token, over and over"):
        canary_suite.check_outputs(stuck, lambda: free)


def promote(database: Database, recipe: Recipe, folders: list[Path]) -> None:
    """As rounds would have: each goes on from the one before."""
    ledger = Ledger(database, recipe.name)
    lease = ledger.take(recipe, "a trainer")
    assert lease is not None
    for folder in folders:
        opened = ledger.open_or_resume(lease, recipe, 70, 5)
        assert opened is not None
        ledger.close(
            lease, opened, state=RoundState.PROMOTED, training={}, verdict={"reason": "better"}, losses={},
            manifest=publish.verify(folder),
        )  # fmt: skip
    ledger.release(lease)


def test_an_adapter_that_is_damaged_after_publishing_is_rolled_back_by_itself(
    published: Callable[..., Path],
    recipe: Recipe,
    trainer: Trainer,
    store: Callable[[list[str]], None],
    database: Database,
) -> None:
    """To the champion before, with its rows; what it had learned is forgotten."""
    store(standard_library(60))
    first, second = published(), published(name="round-0002")
    promote(database, recipe, [first, second])
    (second / "adapter_model.safetensors").write_bytes(b"damaged")
    trainer.start(MIN_NEW_FILES="1000")
    moves = "SELECT kind, actor, adapter_id, reason FROM promotions ORDER BY id OFFSET 2"
    wait_for(lambda: len(rows(database, moves)) == 2)
    wait_for(lambda: (first.parent / publish.CURRENT).readlink() == Path("round-0001"))
    wait_for(lambda: {row.round_id for row in rows(database, "SELECT round_id FROM trained")} == {1})
    rolled_back, rejected = rows(database, moves)
    assert rolled_back[:3] == ("rolled_back", "canary", 1)
    assert rejected[:3] == ("rejected", "canary", 2)
    assert "adapter_model.safetensors is changed" in rolled_back.reason
