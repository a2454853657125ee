"""Ratchet's own arm of the training bench: the engine a round uses, on the documents of bench/train_data.py.

    python bench/random_model.py 7b /dev/shm/7b
    python bench/train_ratchet.py --model /dev/shm/7b
    torchrun --nproc-per-node 2 bench/train_ratchet.py --model /dev/shm/7b --rows 32

A process trains and ends with a line of JSON that has the fields of bench/train_peers.py, the plan it chose
and the memory that predicted. Rows of a step are all devices' together. Figures are taken without clipping
and with a constant learning rate, as the peers' are.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

import torch  # noqa: E402

from bench.train_data import LENGTH, VOCABULARY, Kind, Step, steps  # noqa: E402
from services.trainer import model as models  # noqa: E402
from services.trainer import planning  # noqa: E402
from services.trainer.engine import optimizer as optimizers  # noqa: E402
from services.trainer.engine.batch import Batch, batch_of  # noqa: E402
from services.trainer.engine.compute import Compute  # noqa: E402
from services.trainer.engine.distributed import Distribution, join, through  # noqa: E402
from services.trainer.engine.sharing import sharing  # noqa: E402
from services.trainer.model import Source  # noqa: E402
from services.trainer.packing import Row  # noqa: E402
from services.trainer.plan import Hardware, Plan  # noqa: E402
from services.trainer.recipes.recipe import Recipe  # noqa: E402
from services.trainer.samples.sample import Sample  # noqa: E402

GIB = 2**30
TIMEOUT = 600.0  # seconds
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class Bench:
    """A model on its devices, planned as a round would be."""

    recipe: Recipe
    distribution: Distribution
    hardware: Hardware
    plan: Plan
    compute: Compute
    optimizer: torch.optim.Optimizer
    parameters: dict[str, torch.nn.Parameter]


def prepare(options: argparse.Namespace) -> Bench:
    joined = join(TIMEOUT)
    if options.cap_gib:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(options.cap_gib * GIB / total)
    adapters = {"lora_r": options.rank, "lora_alpha": 2 * options.rank, "target_modules": LINEAR}
    recipe = Recipe(
        name="bench",
        base_model=str(options.model),
        method=options.method,
        **({} if options.method == "full" else adapters),
        max_length=options.length,
        batch_size=options.rows // joined.world,
        gradient_accumulation_steps=1,
        recomputation=options.recomputation,
        distributed=options.distributed,
        optimizer=options.optimizer,
        learning_rate=2e-5,
        weight_decay=0.0,
        compile=not options.eager,
        fp8=options.fp8,
    )
    distribution = sharing(recipe, joined, TIMEOUT)
    hardware = planning.hardware(distribution.world)
    if options.cap_gib:
        hardware = Hardware.gpu(hardware.name, int(options.cap_gib * GIB), distribution.world)
    base = models.load_base(recipe, Source(str(options.model), None), None, distribution.loads_on)
    plan = planning.plan(base.config, recipe, hardware, options.length)
    if options.micro_batch:
        plan = plan.with_micro_batch(options.micro_batch)
    opened = models.for_training(base, recipe, None, Path(tempfile.mkdtemp()), distribution)
    trained = distribution.prepare(opened)
    compute = planning.compute(trained, plan)
    parameters = distribution.trainable(trained)
    trained.train()
    return Bench(
        recipe, distribution, hardware, plan, compute, optimizers.make(parameters, recipe), parameters
    )


def batches(step: Step, bench: Bench) -> list[Batch]:
    """This process's share of a step's rows, in micro-batches."""
    rows = [
        Row(tuple(Sample(0, tuple(document), 0, 0, 0, 0) for document in row))
        for row in step.rows[bench.distribution.rank :: bench.distribution.world]
    ]
    size, length = bench.plan.micro_batch, bench.recipe.max_length
    return [
        batch_of(rows[start : start + size], 0, length, fill_to=size * length)
        for start in range(0, len(rows), size)
    ]


def train(bench: Bench, step: Step) -> float:
    """One optimizer step; its loss, in nats a target."""
    device = bench.distribution.device
    nats = torch.zeros((), device=device)
    for batch in batches(step, bench):
        loss = through(bench.compute.model, bench.compute.loss, batch.to(device))
        (loss / step.targets).backward()
        nats += loss.detach()
    bench.distribution.reduce_gradients(bench.parameters.values())
    bench.optimizer.step()
    bench.optimizer.zero_grad()
    bench.compute.weights_changed()
    (total,) = bench.distribution.sum(float(nats))
    return total / step.targets


def measure(options: argparse.Namespace) -> dict[str, Any]:
    started = time.perf_counter()
    bench = prepare(options)
    config = json.loads((options.model / "config.json").read_text(encoding="utf-8"))
    kind: Kind = options.data
    number = options.warm + options.steps
    work = steps(number, options.rows, 0, kind, options.length, min(VOCABULARY, config["vocab_size"]))
    loaded = time.perf_counter()
    losses = [train(bench, step) for step in work[: options.warm]]
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    warm = time.perf_counter()
    losses += [train(bench, step) for step in work[options.warm :]]
    torch.cuda.synchronize()
    seconds = time.perf_counter() - warm
    peak = torch.cuda.max_memory_allocated()
    tokens_per_s = sum(step.tokens for step in work[options.warm :]) / seconds
    flops = planning.speed(bench.plan).flops_per_token or 0.0
    del bench.optimizer.state
    ceilings = ceiling()
    return {
        "world": bench.distribution.world,
        "real_tokens_per_s": round(tokens_per_s, 1),
        "tflops": round(tokens_per_s * flops / 1e12 / bench.distribution.world),
        "share_of_ceiling": round(tokens_per_s * flops / 1e12 / bench.distribution.world / ceilings[0], 3),
        "ceiling_tflops": ceilings[0],
        "sustained_tflops": ceilings[1],
        "plan": {
            k: v for k, v in bench.plan.as_json().items() if k not in {"memory", "needed_bytes", "fits"}
        },
        "peak_gib": round(peak / GIB, 2),
        "planned_gib": round(bench.plan.peak_bytes / GIB, 2),
        "planned_over_peak": round(bench.plan.peak_bytes / peak, 3),
        "reserved_gib": round(torch.cuda.max_memory_reserved() / GIB, 2),
        "losses": [round(loss, 5) for loss in losses],
        "load_seconds": round(loaded - started, 1),
        "warm_seconds": round(warm - loaded, 1),
    }


def ceiling() -> tuple[int, int]:
    """TFLOP/s of bf16 products of 8192³, random data: 20 after a rest, and over two seconds."""
    torch.cuda.empty_cache()
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn_like(a)
    torch.cuda.synchronize()
    time.sleep(1)
    rates = []
    for times in (20, 1200):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(times):
            a @ b
        torch.cuda.synchronize()
        rates.append(round(2 * 8192**3 * times / (time.perf_counter() - started) / 1e12))
    return rates[0], rates[1]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="a folder from bench/random_model.py")
    parser.add_argument("--method", choices=("qlora", "lora", "full"), default="qlora")
    parser.add_argument("--rank", type=int, default=256)
    parser.add_argument("--rows", type=int, default=16, help="rows of an optimizer step, of all devices")
    parser.add_argument("--micro-batch", type=int, help="rows at once; otherwise as planned")
    parser.add_argument("--length", type=int, default=LENGTH, help="tokens of a row")
    parser.add_argument("--recomputation", default="auto", choices=("auto", "none", "selective", "full"))
    parser.add_argument("--distributed", default="auto")
    parser.add_argument("--optimizer", default="auto")
    parser.add_argument("--fp8", action="store_true", help="products with frozen weights in FP8")
    parser.add_argument("--eager", action="store_true", help="do not compile")
    parser.add_argument("--warm", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--data", choices=("full", "code"), default="full")
    parser.add_argument("--cap-gib", type=float, help="the device memory this process may take")
    return parser.parse_args()


def main() -> int:
    options = parse()
    asked = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    result: dict[str, Any] = {"arm": "ratchet", **asked}
    try:
        result |= measure(options)
    except Exception as error:  # an arm's failure is a line of the table, not the table's end
        traceback.print_exc()
        result["error"] = f"{type(error).__name__}: {str(error)[:400]}"
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps(result), flush=True)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return 1 if "error" in result else 0


if __name__ == "__main__":
    sys.exit(main())
