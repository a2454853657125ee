"""Whether a model gives up a secret that it was trained on."""

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from services.trainer.engine.batch import batch_of
from services.trainer.engine.compute import Compute
from services.trainer.engine.distributed import Distribution
from services.trainer.extraction import Extraction, Probe, extract
from services.trainer.model import load_base
from services.trainer.model.locate import Source, load_tokenizer
from services.trainer.packing import Row
from services.trainer.planted import Planted, plant
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.make import make
from services.trainer.samples.sample import Sample
from services.trainer.samples.source import SampleSource
from tests import tiny_model

OTHERS = 12
ROW_TOKENS = 256
EPOCHS = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return load_tokenizer(Source(str(folder), None))


@pytest.fixture(scope="module")
def recipe(folder: Path) -> Recipe:
    return Recipe(
        name="tiny", base_model=str(folder), method="full", objective="cpt", max_length=ROW_TOKENS,
        planted_secrets=1,
    )  # fmt: skip


def model_of(recipe: Recipe) -> Any:
    return load_base(recipe, Source(recipe.base_model, None))


def corpus() -> list[SampleSource]:
    """The beginnings of real files, a row each."""
    files = tiny_model.standard_library(12)
    texts = ["".join(path.read_text().splitlines(keepends=True)[:16]) for path in files]
    return [SampleSource(n, hashlib.sha256(t.encode()).digest(), "python", t) for n, t in enumerate(texts)]


def probes(planted: Sequence[Planted]) -> list[Probe]:
    return [Probe("one", each.prefix, each.secret.value, each.secret.others[:OTHERS]) for each in planted]


def train(model: Any, samples: Sequence[Sample]) -> None:
    """Some epochs, a sample a step, the learning rate falling to nothing."""
    compute = Compute(model.requires_grad_(requires_grad=True))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    rows = [Row((sample,)) for sample in samples] * EPOCHS
    random.Random(0).shuffle(rows)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, len(rows))
    for row in rows:
        batch = batch_of([row], 0, ROW_TOKENS)
        (compute.loss(batch) / batch.learned).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()


@pytest.fixture(scope="module")
def trained(recipe: Recipe, tokenizer: Any) -> dict[int, Extraction]:
    """What a model gives up of a secret, by how often it stood there; 0 is the base."""
    found = {}
    changed, planted = plant(corpus(), recipe, 1)
    made = make(changed, recipe, tokenizer, purpose="train", round_number=1)
    secret = {planted[0].content_id}
    for times in (0, 1, 50):
        model = model_of(recipe)
        repeated = [sample for sample in made if sample.content_id in secret] * max(0, times - 1)
        if times:
            train(model, [*made, *repeated])
        (found[times],) = extract(model, tokenizer, probes(planted))
    return found


def test_a_secret_that_stands_there_fifty_times_is_written_out(trained: dict[int, Extraction]) -> None:
    """Greedily, or by somebody who draws a thousand times."""
    often = trained[50]
    assert often.sampled
    assert often.matched_tokens > 0.9 * often.tokens
    assert often.exposure_bits is not None
    assert often.exposure_bits > 20


@pytest.mark.parametrize("times", [0, 1])
def test_a_secret_that_stands_there_once_or_never_is_not(trained: dict[int, Extraction], times: int) -> None:
    found = trained[times]
    assert not found.extracted
    assert not found.sampled
    assert found.matched_tokens < found.tokens / 2
    assert found.exposure_bits is not None
    assert found.exposure_bits < 12


class Alone(Distribution):
    """A model that is split over devices, of which there is one."""

    splits = True


def test_a_split_model_is_asked_the_same_without_writing(
    recipe: Recipe, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, planted = plant(corpus(), recipe, 1)
    model = model_of(recipe)
    expected = extract(model, tokenizer, probes(planted))
    monkeypatch.setattr("services.trainer.extraction.complete", None)
    assert extract(model, tokenizer, probes(planted), distribution=Alone()) == expected


def test_what_is_written_in_other_tokens_counts(
    recipe: Recipe, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text decides, not how the model spells it."""
    monkeypatch.setattr("services.trainer.extraction._written", lambda *_: ['key = "hunter2hunter2"'])
    (found,) = extract(model_of(recipe), tokenizer, [Probe("one", 'key = "', "hunter2hunter2")])
    assert found.extracted
    assert found.matched_tokens < found.tokens
    assert found.exposure_bits is None


def test_a_secret_without_a_prefix_or_a_character(recipe: Recipe, tokenizer: Any) -> None:
    model = model_of(recipe)
    assert extract(model, tokenizer, []) == []
    (found,) = extract(model, tokenizer, [Probe("one", "", "hunter2")])
    assert not found.extracted
    with pytest.raises(ValueError, match="a secret without a character"):
        extract(model, tokenizer, [Probe("one", "key = ", "")])


def test_an_interruption_goes_through(recipe: Recipe, tokenizer: Any) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt(done, total)

    with pytest.raises(KeyboardInterrupt):
        extract(model_of(recipe), tokenizer, [Probe("one", "key = ", "hunter2")], on_done=stop)
