"""Training SmolLM2-135M with the demo recipe on this machine's cores: ours against the seeds' way.

Both arms see the same real code, the standard library's, and count real tokens only. The seeds' way is a
padded batch of four samples through transformers' own forward with PEFT's own adapters and torch's AdamW.
The arms take turns step by step, so that whatever else the machine does disturbs both alike; the median
step of each counts. Two figures say whether the speed is bought with anything: `packing_loss_error`, the
relative difference between a packed batch and its documents one by one, and `resume_weight_diff`, the
largest difference of a weight after an interrupted and resumed training, which must be 0.

The floor is this machine's rate of float32 products, measured between the steps, and the operations that a
token cannot do without.
"""

import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from services.core.settings import PROJECT
from services.trainer import model
from services.trainer.engine import optimizer as optimizers
from services.trainer.engine import setup
from services.trainer.engine.batch import batch_of
from services.trainer.engine.compute import Compute
from services.trainer.engine.figures import Hooks
from services.trainer.engine.loop import train
from services.trainer.interruption import Interrupted
from services.trainer.packing import Row, pack
from services.trainer.plan import Shape, flops_per_token
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.rows import mean_document_tokens
from services.trainer.samples.make import make
from services.trainer.samples.sample import IGNORED, Sample
from services.trainer.samples.source import SampleSource
from tests.tiny_model import standard_library

PADDED = 4  # samples of a padded batch: the seeds' per_device_train_batch_size
SIDE = 1024  # of the square products that measure the floor
QUICK, LONG = 120.0, 900.0  # seconds the arms take turns
LEAST = 3  # steps of each, one of them to warm up
CONTENTS = 30  # modules of the standard library
CACHE = PROJECT / ".ratchet" / "cache"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Timed:
    tokens: int  # real ones
    seconds: float

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds


class Bench:
    """The model's folder, its tokenizer and the samples, shared by all arms."""

    def __init__(self) -> None:
        self.recipe = recipe_files.load("demo")
        self.source = model.locate(self.recipe.base_model, None, CACHE)
        self.tokenizer = model.load_tokenizer(self.source)
        contents = [
            SampleSource(number, number.to_bytes(32, "big"), "python", path.read_text(encoding="utf-8"))
            for number, path in enumerate(standard_library(CONTENTS))
        ]
        self.samples: list[Sample] = make(
            contents, self.recipe, self.tokenizer, purpose="train", round_number=1
        )
        self.rows = pack(self.samples, self.recipe.max_length)

    def trained(self, recipe: Recipe | None = None) -> Any:
        """The demo model with a fresh adapter."""
        chosen = recipe or self.recipe
        base = model.load_base(chosen, self.source)
        return model.for_training(base, chosen, None, Path("unused"))


def measure(*, quick: bool) -> dict[str, Any]:
    """Every figure; prints what it does."""
    bench = Bench()
    print(f"{len(bench.samples)} samples in {len(bench.rows)} rows of {bench.recipe.max_length}", flush=True)
    ours, padded, gigaflops = _alternately(bench, QUICK if quick else LONG)
    needed = _gigaflops_per_token(bench)
    rate = statistics.median(one.rate for one in ours)
    before = statistics.median(one.rate for one in padded)
    ceiling = gigaflops / needed
    print(f"ours {rate:.0f} tokens/s, padded batches of {PADDED} {before:.0f}", flush=True)
    print(f"products {gigaflops:.0f} GFLOP/s, {needed:.2f} GFLOP a token: at most {ceiling:.0f} tokens/s")
    return {
        "tokens_per_s": round(rate, 1),
        "vs_padded": round(rate / before, 3),
        "padded_tokens_per_s": round(before, 1),
        "sgemm_gflops": round(gigaflops, 1),
        "ceiling_tokens_per_s": round(ceiling, 1),
        "share_of_ceiling": round(rate / ceiling, 3),
        "threads": torch.get_num_threads(),
        "packing_loss_error": _packing_loss_error(bench),
        "resume_weight_diff": _resume_weight_diff(bench),
    }


def _alternately(bench: Bench, seconds: float) -> tuple[list[Timed], list[Timed], float]:
    """Steps of each arm in turn, for so many seconds, and the median rate of products between them."""
    our_step, padded_step = _ours(bench), _padded(bench)
    ours, padded, products = [], [], []
    began, number = time.monotonic(), 0
    while number < LEAST or time.monotonic() - began < seconds:
        ours.append(our_step(number))
        padded.append(padded_step(number))
        products.append(_gigaflops())
        print(f"step {number}: {ours[-1].rate:.0f} and {padded[-1].rate:.0f} tokens/s", flush=True)
        number += 1
    return ours[1:], padded[1:], statistics.median(products[1:])


def _ours(bench: Bench) -> Callable[[int], Timed]:
    """A whole optimizer step of the demo recipe, as the loop does it."""
    recipe, compute = bench.recipe, Compute(bench.trained(), keep_merged=False)
    compute.model.train()
    parameters = {name: one for name, one in compute.model.named_parameters() if one.requires_grad}
    optimizer = optimizers.make(parameters, recipe)

    def step(number: int) -> Timed:
        rows = _turn(bench.rows, number, recipe.rows_per_step)
        began, tokens = time.monotonic(), 0
        for start in range(0, len(rows), recipe.batch_size):
            batch = batch_of(
                rows[start : start + recipe.batch_size], bench.tokenizer.pad_token_id, recipe.max_length
            )
            (compute.loss(batch) / batch.learned).backward()
            tokens += batch.tokens
        optimizer.step()
        optimizer.zero_grad()
        compute.weights_changed()
        return Timed(tokens, time.monotonic() - began)

    return step


def _padded(bench: Bench) -> Callable[[int], Timed]:
    """A batch of four samples, padded to the longest, through PEFT and transformers as they are."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    recipe = bench.recipe
    base = AutoModelForCausalLM.from_pretrained(bench.source.location, dtype=model.compute_dtype())
    adapted = get_peft_model(
        base,
        LoraConfig(
            r=recipe.lora_r, lora_alpha=recipe.lora_alpha, target_modules="all-linear", task_type="CAUSAL_LM"
        ),
    )
    adapted.train()
    trained = [one for one in adapted.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=recipe.learning_rate)

    def step(number: int) -> Timed:
        samples = _turn(bench.samples, number, PADDED)
        began = time.monotonic()
        adapted(**_padded_batch(samples, bench.tokenizer.pad_token_id)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return Timed(sum(len(sample.ids) for sample in samples), time.monotonic() - began)

    return step


def _padded_batch(samples: Sequence[Sample], pad_id: int) -> dict[str, torch.Tensor]:
    """(B, T) int64, as transformers' collators make it."""
    width = max(len(sample.ids) for sample in samples)
    rows = [(list(sample.ids), sample.labels, width - len(sample.ids)) for sample in samples]
    return {
        "input_ids": torch.tensor([ids + [pad_id] * room for ids, _, room in rows]),
        "labels": torch.tensor([labels + [IGNORED] * room for _, labels, room in rows]),
        "attention_mask": torch.tensor([[1] * len(ids) + [0] * room for ids, _, room in rows]),
    }


def _turn(things: Sequence[Any], number: int, size: int) -> list[Any]:
    return [things[(number * size + at) % len(things)] for at in range(size)]


def _gigaflops(seconds: float = 0.5) -> float:
    """This machine's rate of float32 products, now."""
    a, b = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    began, products = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        a @ b
        products += 1
    return 2 * SIDE**3 * products / (time.monotonic() - began) / 1e9


def _gigaflops_per_token(bench: Bench) -> float:
    """Useful operations; the output layer only where a token is learned."""
    from transformers import AutoConfig

    shape = Shape.from_config(AutoConfig.from_pretrained(bench.source.location).to_dict())
    everywhere = flops_per_token(shape, bench.recipe, mean_document_tokens(bench.rows))
    learned = sum(label != IGNORED for one in bench.samples for label in one.labels)
    unlearned = 1 - learned / sum(len(one.ids) for one in bench.samples)
    return (everywhere - unlearned * 4 * shape.head) / 1e9


@torch.no_grad()
def _packing_loss_error(bench: Bench) -> float:
    """|packed − one by one| / one by one, of the first rows' loss, on a model with trained-like adapters."""
    compute = Compute(bench.trained(), keep_merged=False)
    torch.manual_seed(0)
    for name, parameter in compute.model.named_parameters():
        if "lora_B" in name:
            parameter.normal_(std=0.01)
    compute.weights_changed()
    rows = sorted(bench.rows, key=lambda row: -len(row.samples))[:3]  # many documents in each
    pad_id, length = bench.tokenizer.pad_token_id, bench.recipe.max_length
    packed = float(compute.loss(batch_of(rows, pad_id, length)))
    alone = sum(
        float(compute.loss(batch_of([Row((sample,))], pad_id, length)))
        for row in rows
        for sample in row.samples
    )
    return abs(packed - alone) / alone


def _resume_weight_diff(bench: Bench) -> float:
    """The largest after three short steps with dropout, whole and stopped in the middle of the second."""
    recipe = bench.recipe.model_copy(
        update={"lora_dropout": 0.1, "max_length": 128, "batch_size": 1, "max_steps": 3, "epochs": 10.0}
    )
    samples = [Sample(one.content_id, one.ids[:128], 8, 8, 128, 300) for one in bench.samples[:8]]
    rows = pack([one for one in samples if len(one.ids) == 128], 128)

    def run(folder: Path, stop_at: int | None) -> dict[str, torch.Tensor]:
        asked = 0

        def stop() -> bool:
            nonlocal asked
            asked += 1
            return asked == stop_at

        torch.manual_seed(0)
        compute = Compute(bench.trained(recipe), keep_merged=False)
        made = setup.prepare(compute, rows, recipe, folder, pad_id=bench.tokenizer.pad_token_id)
        train(made, Hooks(lambda _: None, lambda *_: None, stop, lambda _: (1.0, 1.0)))
        return {name: one.detach().clone() for name, one in made.parameters.items()}

    with tempfile.TemporaryDirectory(prefix="ratchet-resume-") as directory:
        whole = run(Path(directory, "whole"), None)
        try:
            run(Path(directory, "parts"), 5)  # asked before a step and after each of its two micro-batches
        except Interrupted:
            torch.manual_seed(1)
        resumed = run(Path(directory, "parts"), None)
    return max(float((resumed[name] - value).abs().max()) for name, value in whole.items())
