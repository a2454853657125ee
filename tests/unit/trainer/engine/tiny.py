"""Random models of two layers with adapters, samples for them, and a recipe: a training of a second."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from services.trainer import evaluate
from services.trainer.engine import attention, setup
from services.trainer.engine.compute import Compute
from services.trainer.engine.figures import Hooks, Progress, Training
from services.trainer.engine.loop import train
from services.trainer.packing import Row, pack
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.sample import Sample

VOCABULARY, LENGTH, PAD = 96, 64, 0
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
FAMILIES = {"llama": (LlamaConfig, LlamaForCausalLM), "qwen2": (Qwen2Config, Qwen2ForCausalLM)}


def base(family: str = "llama", dtype: torch.dtype = torch.float32) -> Any:
    """A causal LM whose attention keeps to documents; the same every time."""
    config, kind = FAMILIES[family]
    torch.manual_seed(1)
    model = kind._from_config(config(**SHAPE), attn_implementation=attention.register())
    model.lm_head.weight.data.mul_(10)  # logits of about 1, as a trained model has: something to learn with
    return model.to(dtype)


def adapted(family: str = "llama", dtype: torch.dtype = torch.float32, dropout: float = 0.0) -> Any:
    """With LoRA whose B is not zero, so that every gradient is there."""
    model = base(family, dtype)
    torch.manual_seed(2)
    options = {"lora_alpha": 8, "lora_dropout": dropout, "target_modules": "all-linear"}
    model = get_peft_model(model, LoraConfig(r=4, task_type="CAUSAL_LM", **options))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.05)
    return model


def samples(count: int, *, seed: int = 0) -> list[Sample]:
    """Arithmetic sequences of tokens, which a model can learn to continue."""
    chosen = random.Random(seed)
    made = []
    for number in range(count):
        size, start, step = chosen.randint(4, 40), chosen.randint(1, 90), chosen.randint(1, 5)
        ids = tuple((start + at * step) % (VOCABULARY - 1) + 1 for at in range(size))
        prompt = size // 3
        made.append(Sample(number, ids, prompt, prompt, size, 3 * (size - prompt)))
    return made


def recipe(**fields: Any) -> Recipe:
    """Two rows at once, four to a step; 40 samples are about 4 steps an epoch."""
    return Recipe.model_validate(
        {
            "name": "tiny",
            "base_model": "./tiny",
            "method": "lora",
            "max_length": LENGTH,
            "batch_size": 2,
            "gradient_accumulation_steps": 2,
            "learning_rate": 0.01,
            "epochs": 3,
            "eval_steps": 3,
            **fields,
        }
    )


class Round:
    """A training with everything that can be seen of it from outside."""

    def __init__(
        self, folder: Path, chosen: Recipe, model: Any = None, rows: list[Row] | None = None
    ) -> None:
        self.model = adapted() if model is None else model
        self.compute = Compute(self.model)
        self.rows = pack(samples(40), LENGTH) if rows is None else rows
        self.validation = pack(samples(8, seed=9), LENGTH)
        self.recipe = chosen
        self.setup = setup.prepare(self.compute, self.rows, chosen, folder, pad_id=PAD)
        self.progress: list[Progress] = []
        self.logged: list[tuple[str, int, dict[str, Any]]] = []
        self.evaluations: list[int] = []

    def train(self, stop: Callable[["Round"], bool] = lambda _: False) -> Training:
        """Until it is done, or `stop` says so when asked, which raises Interrupted."""

        def evaluate_now(step: int) -> tuple[float, float]:
            self.evaluations.append(step)
            items = evaluate.losses(self.compute, self.validation, rows_at_once=2, pad_id=PAD, longest=LENGTH)
            return evaluate.nats_per_token(items), evaluate.bits_per_byte(items)

        return train(
            self.setup,
            Hooks(
                on_progress=self.progress.append,
                on_log=lambda kind, step, metrics: self.logged.append((kind, step, metrics)),
                stop_requested=lambda: stop(self),
                evaluate=evaluate_now,
            ),
        )

    @property
    def weights(self) -> dict[str, torch.Tensor]:
        return {name: one.detach().clone() for name, one in self.setup.parameters.items()}
