"""The base model in memory: its type of numbers, where it lies, and a pulse to tell that it computes."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from services.core.errors import ConfigurationError
from services.trainer.engine import attention
from services.trainer.engine.distributed import ALONE, causal_lm_of
from services.trainer.model.locate import Source, explained, quiet
from services.trainer.recipes.recipe import Recipe


def has_gpu() -> bool:
    return torch.cuda.is_available()


def load_base(
    recipe: Recipe, source: Source, token: str | None = None, device: torch.device | None = None
) -> Any:
    """The causal LM with attention that knows documents, in evaluation mode.

    lora: in `compute_dtype()`; qlora: in NF4, scales quantised too (Dettmers et al. 2023); full: in bfloat16
    for a GPU, where `Sharded` makes float32 masters of it, in float32 for the CPU. `device` is this
    process's unless the distribution says otherwise (`loads_on`).

    Raises ModelNotFoundError when it is neither in the cache nor to be had, ConfigurationError when its
    architecture has an attention of its own that cannot be replaced.
    """
    dtype = torch.float32 if recipe.method == "full" and not has_gpu() else compute_dtype()
    options: dict[str, Any] = {}
    if recipe.method == "qlora":
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype,
        )
    with explained(source), quiet():
        try:
            model = AutoModelForCausalLM.from_pretrained(
                source.location,
                revision=source.revision,
                token=token,
                dtype=dtype,
                device_map={"": device or ALONE.device},
                attn_implementation=attention.register(flash_attn=recipe.use_flash_attention),
                use_safetensors=True,
                trust_remote_code=False,
                **options,
            )
        except ValueError as exc:
            raise ConfigurationError(f"base_model {source.location} cannot be trained here: {exc}") from exc
    _keep_gradients_on_avx512(model)
    return model


@cache
def compute_dtype() -> torch.dtype:
    """bfloat16 where the hardware multiplies it, float32 elsewhere.

    Measured with the demo model on two cores without AVX512-BF16: float32 218 tokens/s, bfloat16 81.
    """
    if has_gpu():
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return torch.bfloat16 if "avx512_bf16" in flags or "amx_bf16" in flags else torch.float32


def feel_pulse(model: Any, beat: Callable[[], None]) -> None:
    """Call `beat` from the training thread at every decoder layer, forward and backward, on the CPU.

    There one micro-batch of a large model may take longer than the daemon waits for progress.
    """
    if has_gpu():
        return

    def on_forward(_layer: Any, _inputs: Any, output: Any) -> None:
        beat()
        hidden = output[0] if isinstance(output, tuple) else output  # (B, T, hidden)
        if hidden.requires_grad:
            hidden.register_hook(on_backward)

    def on_backward(_gradient: Any) -> None:
        beat()

    for layer in causal_lm_of(model).base_model.layers:
        layer.register_forward_hook(on_forward)


def _keep_gradients_on_avx512(model: Any) -> None:
    """bitsandbytes 0.50 repacks NF4 weights for AVX512-BF16 CPUs at the first evaluation and then drops
    gradients silently: keep it from doing so.
    """
    for part in model.modules():
        if hasattr(part, "support_avx512bf16_for_cpu"):
            part.support_avx512bf16_for_cpu = False
