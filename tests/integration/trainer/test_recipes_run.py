"""Every recipe that ships makes a whole round, on a tiny model of its base's architecture, in a few steps."""

import json
import math
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from services.core.db import Database
from services.core.errors import ConfigurationError
from services.core.settings import Settings
from services.processor.stages import units
from services.trainer import publish
from services.trainer.context import Books, Context
from services.trainer.engine.distributed import ALONE
from services.trainer.heartbeat import Heart
from services.trainer.interruption import Interruption
from services.trainer.ledger import Ledger
from services.trainer.receipts import verifying
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.shapes import KNOWN
from services.trainer.rounds import run
from tests import tiny_model
from tests.integration.trainer.conftest import standard_library

SHORT = {  # what makes a round one of seconds; all else is the recipe's
    "distributed": "auto", "max_length": 512, "max_contents": 18, "held_out_min": 8, "validation_min": 4,
    "held_out_pairs": 1, "max_steps": 4, "eval_steps": 2, "early_stopping_threshold": 0.0,
    "general_suite": None, "suites": (), "completion_items": 4,
}  # fmt: skip
OF_RANDOM_WEIGHTS = {
    "lora": 0.02,
    "qlora": 0.02,
    "full": 0.003,
}  # learning rates from which they learn at once
FINE_TUNING = [
    name for name in recipe_files.available() if recipe_files.load(name).objective != "reinforcement"
]  # the others make theirs in reinforcement/test_rounds.py
RANK = {"lora_r": 8, "lora_alpha": 16}


@pytest.fixture(scope="module")
def model_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A random model of a base model's architecture, with a chat template where that has one; made once."""
    made: dict[tuple[bool, bool], Path] = {}

    def of(base_model: str) -> Path:
        kind = (KNOWN[base_model]["model_type"] == "qwen2", "Instruct" in base_model)
        if kind not in made:
            made[kind] = tiny_model.make(tmp_path_factory.mktemp("model"), qwen=kind[0], instruct=kind[1])
        return made[kind]

    return of


@pytest.fixture
def short(model_of: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Recipe]:
    """A recipe that ships, for a model of kilobytes."""

    def of(name: str) -> Recipe:
        fields = recipe_files.read(recipe_files.find(name))
        recipe = recipe_files.load(name)
        changed = {**SHORT, "learning_rate": OF_RANDOM_WEIGHTS[recipe.method]}
        if recipe.method != "full":
            changed |= RANK
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump({**fields, **changed, "base_model": str(model_of(recipe.base_model))}))
        return recipe_files.load(str(path))

    return of


@pytest.fixture
def corpus(store: Callable[[list[str]], None], database: Database) -> None:
    """Real code with its units, as the processor cuts them."""
    store(standard_library(60))
    with database.transaction() as tx:
        cursor = tx._cursor
        cursor.execute("SELECT id, language, text FROM contents")
        for content in cursor.fetchall():
            cut = units.split(content.language, content.text)
            cursor.executemany(
                "INSERT INTO units VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [
                    (content.id, number, unit.kind, unit.name, unit.start_byte, unit.end_byte,
                     unit.start_line, unit.end_line, unit.comment_byte)
                    for number, unit in enumerate(cut)
                ],
            )  # fmt: skip


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    """The child's, as long as a test plays the child."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    yield Interruption()
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize("name", FINE_TUNING)
def test_a_recipe_that_ships_makes_a_round(
    name: str, short: Callable[[str], Recipe], database: Database,
    interruption: Interruption, tmp_path: Path,
) -> None:  # fmt: skip
    """From contents in PostgreSQL to a published adapter or model that is better than what it began with."""
    recipe = short(name)
    settings = Settings(
        adapters_dir=tmp_path / "adapters", checkpoints_dir=tmp_path / "checkpoints",
        logs_dir=tmp_path / "logs", cache_dir=tmp_path / "cache", wandb_mode="disabled",
    )  # fmt: skip
    ledger = Ledger(database, recipe.name)
    lease = ledger.take(recipe, "test")
    assert lease is not None

    run(Context(settings, recipe, Books(ledger, lease), Heart(None), interruption, ALONE))

    with database.transaction() as tx:
        tx._cursor.execute("SELECT * FROM rounds")
        (round_,) = tx._cursor.fetchall()
    assert round_.state == "promoted", round_.verdict
    assert all(math.isfinite(bits) for bits in round_.verdict["bits_per_byte"].values() if bits is not None)
    published = tmp_path / "adapters" / name / "current"
    manifest = publish.verify(published)
    receipt, _ = verifying.verify(published.resolve())
    assert (receipt.added, receipt.header.exposure) == (None, "counted")
    assert manifest["recipe"] == recipe.model_dump(mode="json")
    if recipe.method == "full":
        assert json.loads((published / "config.json").read_text())["model_type"] == "qwen2"
    else:
        assert json.loads((published / "adapter_config.json").read_text())["r"] == recipe.lora_r


@pytest.mark.usefixtures("corpus")
def test_a_recipe_that_does_not_fit_its_model_opens_no_round(
    short: Callable[[str], Recipe], database: Database, interruption: Interruption, tmp_path: Path
) -> None:
    """A round would keep it: put right, the recipe would not count until that round is over."""
    recipe = short("qwen1.5b-sft").model_copy(update={"lora_r": 64, "target_modules": ("q_prj",)})
    ledger = Ledger(database, recipe.name)
    lease = ledger.take(recipe, "test")
    assert lease is not None
    settings = Settings(cache_dir=tmp_path)
    context = Context(settings, recipe, Books(ledger, lease), Heart(None), interruption, ALONE)
    with pytest.raises(
        ConfigurationError, match="q_prj is no linear layer of this qwen2 model: did you mean"
    ):
        run(context)
    assert ledger.open_round() is None
