"""What benchmarks' solutions cost a model."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from services.trainer.engine.compute import Compute
from services.trainer.model import load_base
from services.trainer.model.locate import Source, load_tokenizer
from services.trainer.suites import formats, likelihood
from tests import tiny_model
from tests.unit.trainer.engine import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return load_tokenizer(Source(str(folder), None))


def test_only_the_solution_counts(tokenizer: Any) -> None:
    task = formats.human_eval()[0]
    (item,) = likelihood.items([task], tokenizer)
    sample = item.sample
    assert tokenizer.decode(sample.ids) == task.reference
    assert tokenizer.decode(sample.ids[sample.code_start :]) == task.continuation
    assert sample.code_bytes == len(task.continuation.encode())


def test_the_loss_is_that_of_each_solution_alone(folder: Path, tokenizer: Any) -> None:
    """Packed with others as the gate's losses are, and as one forward pass of its own says."""
    model = load_base(tiny.recipe(base_model=str(folder)), Source(str(folder), None))
    items = likelihood.items(formats.human_eval()[:6], tokenizer)
    scores = likelihood.measure(Compute(model), items, pad_id=tokenizer.pad_token_id)
    for item, score in zip(items, scores, strict=True):
        ids = torch.tensor([list(item.sample.ids)])
        with torch.no_grad():
            logits = model(ids, use_cache=False).logits[0, item.sample.code_start - 1 : -1].float()
        nats = torch.nn.functional.cross_entropy(logits, ids[0, item.sample.code_start :], reduction="sum")
        assert math.isclose(score.value, float(nats), rel_tol=1e-3)
        assert (score.name, score.weight) == (item.task.name, len(item.task.continuation.encode()))
    found = likelihood.figures(scores)
    nats_together, size = sum(each.value for each in scores), sum(each.weight for each in scores)
    assert math.isclose(found["bits_per_byte"], nats_together / math.log(2) / size)
    assert 0 <= found["token_accuracy"] <= 1 < found["perplexity"]


def test_nothing_asked_nothing_measured() -> None:
    assert likelihood.measure(None, [], pad_id=0) == []
