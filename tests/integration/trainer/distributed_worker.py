"""A process of test_distributed.py: trains the tiny model on made-up rows, as a round would, and says how.

`python distributed_worker.py FOLDER CASE…`, alone or under torchrun; the first process writes
FOLDER/CASE-WORLD.json.
"""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from services.trainer import evaluate, model
from services.trainer.engine import distributed, optimizer
from services.trainer.engine.batch import batch_of
from services.trainer.engine.compute import Compute
from services.trainer.engine.distributed import Distribution, through
from services.trainer.engine.sharded import Sharded
from services.trainer.engine.sharing import sharing
from services.trainer.packing import Row
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.sample import Sample

CASES: dict[str, dict[str, Any]] = {
    "lora": {"method": "lora", "distributed": "auto"},
    "lora-zero3": {"method": "lora", "distributed": "zero3"},
    "pissa": {"method": "lora", "init_lora_weights": "pissa"},
    "qlora": {"method": "qlora"},
    "full": {"method": "full", "distributed": "auto"},
    "full-zero2": {"method": "full", "distributed": "zero2"},
    "full-as-on-a-gpu": {"method": "full"},  # split, even over one process
}
STEPS, ROWS = 4, 4  # rows a step, over all processes
TIMEOUT = 30.0  # seconds


def row(number: int) -> Row:
    generator = torch.Generator().manual_seed(number)
    ids = torch.randint(3, 900, (24 + number % 9,), generator=generator).tolist()
    return Row((Sample(number, tuple(ids), 4, 4, len(ids), 50),))


class Training:
    """The tiny model as a round has it before its first step."""

    def __init__(self, folder: Path, fields: dict[str, Any], joined: Distribution) -> None:
        defaults = {"name": "t", "base_model": str(folder / "tiny"), "learning_rate": 0.01}
        recipe = Recipe.model_validate({**defaults, **fields})
        as_on_gpu = fields == CASES["full-as-on-a-gpu"]
        split = partial(Sharded, keep_gathered=False, timeout=TIMEOUT)
        self.distribution = split() if as_on_gpu else sharing(recipe, joined, TIMEOUT)
        source = model.locate(recipe.base_model, None, folder)
        base = model.load_base(recipe, source, device=self.distribution.loads_on)
        start = folder / f"start-{joined.world}"
        opened = model.for_training(base, recipe, None, start, self.distribution)
        self.model = self.distribution.prepare(opened)
        self.compute = Compute(self.model, recomputed_layers=1)  # of two
        self.parameters = self.distribution.trainable(self.model)
        self.optimizer = optimizer.make(self.parameters, recipe)
        self.start = start

    def step(self, number: int) -> tuple[float, float]:
        """The loss a token and the gradients' norm."""
        shared = self.distribution
        rows = [row(number * ROWS + index) for index in range(shared.rank, ROWS, shared.world)]
        batches = [batch_of([one], 0, 64) for one in rows]
        (learned,) = shared.sum(sum(batch.learned for batch in batches))
        nats = 0.0
        self.model.train()
        for batch in batches:
            loss = through(self.model, self.compute.loss, batch)
            (loss / learned).backward()
            nats += float(loss.detach())
        shared.reduce_gradients(self.parameters.values())
        norm = shared.clip_gradients(self.parameters.values(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.compute.weights_changed()
        return shared.sum(nats)[0] / learned, norm

    def judged(self) -> float:
        rows = [row(1000 + index) for index in range(3)]  # an odd number: one process runs one for nothing
        options = {"rows_at_once": 1, "pad_id": 0, "longest": 64}
        items = evaluate.losses(self.compute, rows, **options, distribution=self.distribution)
        return evaluate.nats_per_token(items)


def train(case: str, folder: Path, joined: Distribution) -> dict[str, Any]:
    """Steps with a checkpoint in the middle, the same again from that checkpoint, and what is published."""
    training = Training(folder, CASES[case], joined)
    shared = training.distribution
    before = training.judged()
    steps = [training.step(number) for number in range(STEPS // 2)]
    part = folder / f"{case}-{shared.world}-{shared.rank if shared.splits else 0}.safetensors"
    if shared.splits or shared.is_first:
        tensors, _ = optimizer.state_of(training.optimizer, training.parameters)
        save_file({**training.parameters, **tensors}, part)
    shared.any(False)
    steps += [training.step(number) for number in range(STEPS // 2, STEPS)]

    saved = load_file(part)
    with torch.no_grad():
        for name, parameter in training.parameters.items():
            parameter.copy_(saved[name])
    moments = {key: value for key, value in saved.items() if "::" in key}
    optimizer.restore(training.optimizer, training.parameters, moments, {})
    shared.weights_changed()
    training.compute.weights_changed()
    again = [training.step(number) for number in range(STEPS // 2, STEPS)]

    model.settle(training.model, shared)
    training.compute.weights_changed()
    after = training.judged()
    weights = {}
    if CASES[case]["method"] == "full":
        weights = shared.whole_weights(training.model, model.PUBLISHED_DTYPE)
    if shared.is_first:
        model.save(training.model, folder / f"{case}-{shared.world}", weights, training.start)
    result = {
        "kind": type(shared).__name__, "before": before, "steps": steps, "again": again, "after": after,
        "part": sum(one.numel() for one in training.parameters.values()),
    }  # fmt: skip
    if CASES[case]["method"] == "full":  # another round begins with what was published
        shared.any(False)
        model.begin_from(training.model, folder / f"{case}-{shared.world}", shared)
        training.compute.weights_changed()
        result["begun"] = training.judged()
    return result


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    joined = distributed.join(TIMEOUT)
    for case in sys.argv[2:]:
        result = train(case, folder, joined)
        if joined.is_first:
            (folder / f"{case}-{joined.world}.json").write_text(json.dumps(result))
    joined.close()


if __name__ == "__main__":
    main()
