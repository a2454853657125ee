"""Sample predictions: what the model writes next."""

from pathlib import Path

import torch

from services.trainer import model
from services.trainer.engine.compute import Compute
from services.trainer.model.locate import Source, load_tokenizer
from services.trainer.packing import pack
from services.trainer.predictions import PREDICTED_TOKENS, predict
from services.trainer.samples.sample import Sample
from tests.integration.trainer.conftest import standard_library
from tests.unit.trainer.engine import tiny


def test_predictions_are_greedy_and_leave_no_trace(tiny_model: Path, tmp_path: Path) -> None:
    """As the most likely token each time, without a cache; mode and generators stay as they are."""
    source = Source(str(tiny_model), None)
    tokenizer = load_tokenizer(source)
    recipe = tiny.recipe(base_model=str(tiny_model), max_length=128)
    trained = model.for_training(model.load_base(recipe, source), recipe, None, tmp_path)
    Compute(trained)
    trained.train()
    texts = [tokenizer.encode(text, add_special_tokens=False)[:100] for text in standard_library(3)]
    samples = [Sample(number, tuple(ids), 40, 40, 100, 300) for number, ids in enumerate(texts)]
    before = torch.get_rng_state()
    found = predict(trained, tokenizer, pack(samples, 128), 2)
    assert trained.training
    assert torch.equal(torch.get_rng_state(), before)
    assert [one.content_id for one in found] == [0, 1]
    ids = list(samples[0].ids[:40])
    trained.eval()
    with torch.no_grad():
        for _ in range(PREDICTED_TOKENS):
            ids.append(int(trained(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
            if ids[-1] == tokenizer.eos_token_id:
                break
    assert found[0].prompt == tokenizer.decode(samples[0].ids[:40])
    assert found[0].prediction == tokenizer.decode(ids[40:])
    assert found[0].truth == tokenizer.decode(samples[0].ids[40 : 40 + PREDICTED_TOKENS])
