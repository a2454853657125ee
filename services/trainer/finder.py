"""The process behind `ratchet lr-find`: contents as JSON on standard input, the curve on standard output.

Every step is a line on standard error. The model it trains is forgotten.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from services.core.errors import RatchetError
from services.core.models import Json
from services.core.settings import from_environment
from services.trainer import inquiry, model, planning, range_test
from services.trainer.comparing.questions import content_of
from services.trainer.engine import optimizer as optimizers
from services.trainer.engine import randomness
from services.trainer.engine.setup import Setup, prepare
from services.trainer.packing import Row, pack
from services.trainer.range_test import Point
from services.trainer.recipes.recipe import Recipe
from services.trainer.rows import mean_document_tokens
from services.trainer.samples.make import make


def work(asked: Json) -> Json:
    """The curve and what it says. Raises RatchetError for a recipe or contents that cannot be trained on."""
    recipe = Recipe.model_validate(asked["recipe"])
    with TemporaryDirectory(prefix="ratchet-lr-find-") as folder:
        setup = _prepared(recipe, asked["contents"], Path(folder))
        tried = range_test.rates(asked["lowest"], asked["highest"], asked["steps"])
        points: list[Point] = []
        for points in curve(setup, tried):
            last = points[-1]
            sys.stderr.write(f"step {len(points)} {len(tried)} {last.learning_rate} {last.smoothed}\n")
            sys.stderr.flush()
    answer = {**range_test.find(points).as_json(), "points": [point.as_json() for point in points]}
    return dict(json.loads(json.dumps(answer), parse_constant=lambda _: None))


def curve(setup: Setup, tried: list[float]) -> Iterator[list[Point]]:
    """The points so far, after every step; ends early when the loss has diverged."""
    losses: list[float] = []
    setup.compute.model.train()
    try:
        for step, rate in enumerate(tried):
            randomness.seed(setup.recipe.seed, 0, step)
            losses.append(_step(setup, step, rate))
            points = range_test.curve(tried, losses)
            yield points
            if range_test.has_diverged(points):
                return
    finally:
        setup.feed.close()


def _step(setup: Setup, number: int, rate: float) -> float:
    """One optimizer step at this rate; the loss before it, nats a token."""
    batches = setup.feed.batches(number, setup.micro_batch)
    learned = max(1, sum(batch.learned for batch in batches))
    nats = 0.0
    for batch in batches:
        loss = setup.compute.loss(batch.to(setup.device))
        (loss / learned).backward()
        nats += float(loss)
    setup.distribution.clip_gradients(setup.parameters.values(), setup.recipe.max_grad_norm)
    optimizers.set_learning_rate(setup.optimizer, rate)
    setup.optimizer.step()
    setup.optimizer.zero_grad()
    setup.compute.weights_changed()
    return nats / learned


def _prepared(recipe: Recipe, contents: list[dict[str, Any]], folder: Path) -> Setup:
    settings = from_environment()
    source = model.locate(recipe.base_model, recipe.revision, settings.cache_dir)
    tokenizer = model.load_tokenizer(source, settings.hub_token)
    sources = [content_of(fields) for fields in contents]
    rows = _rows(make(sources, recipe, tokenizer, purpose="train", round_number=1), recipe)
    hardware = planning.hardware(1)
    base = model.load_base(recipe, source, settings.hub_token)
    plan = planning.plan(base.config, recipe, hardware, mean_document_tokens(rows))
    trained = model.for_training(base, recipe, None, folder)
    compute = planning.compute(trained, plan)
    return prepare(compute, rows, recipe, folder, pad_id=tokenizer.pad_token_id, micro_batch=plan.micro_batch)


def _rows(samples: list[Any], recipe: Recipe) -> list[Row]:
    rows = pack(samples, recipe.max_length)
    if not rows:
        raise RatchetError("no content is long enough to make a sample of: add more code")
    return rows


if __name__ == "__main__":
    sys.exit(inquiry.answer(work))
