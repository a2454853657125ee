"""What an adapter does to its base, weight by weight: PEFT merges each in float32, on a hollow model.

Every weight of that model is one number, shown as a matrix of the right shape: memory holds the adapter and
the one weight at work, whatever the size of the base (on torch's meta device PEFT would lose the adapter).
Sums are made in float32 and rounded once to the type that the base is stored in; in bfloat16 PEFT's own
`merge_and_unload` rounds the adapter's part first.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import PeftConfig, PeftModel
from peft.tuners.lora.layer import LoraLayer
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM

from services.core.errors import ConfigurationError
from services.trainer.model.locate import quiet

WEIGHTS = "adapter_model.safetensors"
PREFIX = "base_model.model."  # what PEFT puts before a module's name
OF_LAYERS = (".lora_",)  # in names of tensors that belong to an adapted layer
HEAD, EMBEDDINGS = "lm_head.weight", "embed_tokens.weight"


@dataclass(frozen=True)
class Change:
    """An adapter, ready to be put into weights."""

    folder: Path
    layers: dict[str, Any]  # name of a module → PEFT's layer
    replaced: dict[str, str]  # name of a weight → name of the adapter's tensor that takes its place
    tied: str | None  # name of the embeddings, where they are the output layer too

    @property
    def touched(self) -> set[str]:
        """Names of the weights that become others."""
        return {f"{name}.weight" for name in self.layers} | set(self.replaced)

    def applied(self, name: str, weight: torch.Tensor) -> torch.Tensor:
        """The weight after the adapter, in its own type; raises ConfigurationError where that cannot be."""
        if name in self.replaced:
            weight = self._replacement(name, weight)
        layer = self.layers.get(name.removesuffix(".weight")) if name.endswith(".weight") else None
        return weight if layer is None else _merged(layer, weight, name)

    def _replacement(self, name: str, weight: torch.Tensor) -> torch.Tensor:
        with safe_open(self.folder / WEIGHTS, framework="pt") as file:
            found = file.get_tensor(self.replaced[name])
        if found.shape != weight.shape:
            raise ConfigurationError(
                f"the adapter in {self.folder} has {name} of shape {tuple(found.shape)}, the base"
                f" {tuple(weight.shape)}: its vocabulary was changed, which cannot be merged"
            )
        return found.to(weight.dtype)


def read(base: Path, folder: Path, stored: Collection[str]) -> Change:
    """The adapter of a folder, for a base whose config lies in `base` and whose weights are `stored`.

    Raises ConfigurationError for anything in it that would be left out of a merged model.
    """
    config = PeftConfig.from_pretrained(str(folder))
    if str(getattr(config.peft_type, "value", config.peft_type)) != "LORA":
        raise ConfigurationError(f"{folder} is a {config.peft_type} adapter: LoRA is what can be merged")
    model = _hollow(base)
    try:
        with quiet():
            adapted = PeftModel.from_pretrained(
                model, str(folder), low_cpu_mem_usage=True, torch_device="cpu"
            )
    except (RuntimeError, ValueError, KeyError, TypeError) as exc:
        raise ConfigurationError(f"the adapter in {folder} does not fit the base in {base}: {exc}") from exc
    layers = {
        name.removeprefix(PREFIX): part
        for name, part in adapted.named_modules()
        if isinstance(part, LoraLayer)
    }
    change = Change(folder, layers, _replaced(folder, layers), _tied(model, stored))
    _check(change, stored)
    if change.tied and config.ensure_weight_tying:
        raise ConfigurationError(f"the adapter in {folder} keeps tied weights tied: it cannot be merged here")
    return change


def _hollow(base: Path) -> Any:
    """The base's architecture, on the CPU, without the memory of its weights."""
    with torch.device("meta"), quiet():
        model = AutoModelForCausalLM.from_config(
            AutoConfig.from_pretrained(str(base), trust_remote_code=False),
            dtype=torch.float32,  # PEFT gives its layers the base's
            trust_remote_code=False,
        )
    for part in model.modules():
        for name, weight in list(part.named_parameters(recurse=False)):
            setattr(part, name, _shown(weight.shape))
    return model


def _shown(shape: torch.Size) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.zeros(()).expand(shape), requires_grad=False)


def _tied(model: Any, stored: Collection[str]) -> str | None:
    if not model.config.get_text_config().tie_word_embeddings:
        return None
    return next((name for name in sorted(stored) if name.endswith(EMBEDDINGS)), None)


def _replaced(folder: Path, layers: Collection[str]) -> dict[str, str]:
    """The adapter's tensors that are whole weights; every other belongs to one of the layers."""
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        names = list(file.keys())
    whole = {}
    for name in names:
        plain = name.removeprefix(PREFIX)
        layer = next((plain.partition(mark)[0] for mark in OF_LAYERS if mark in plain), None)
        if layer is None:
            whole[plain.replace(".base_layer.", ".")] = name
        elif layer not in layers:
            raise ConfigurationError(f"the adapter in {folder} has {name}: the base has no such layer")
    return whole


def _check(change: Change, stored: Collection[str]) -> None:
    for name in sorted(change.touched):
        if name not in stored and not (change.tied and name == HEAD):
            raise ConfigurationError(
                f"the adapter in {change.folder} changes {name}, which the base's files do not hold under"
                " that name: this architecture cannot be merged here"
            )


def _merged(layer: Any, weight: torch.Tensor, name: str) -> torch.Tensor:
    base = layer.get_base_layer()
    if base.weight.shape != weight.shape:
        raise ConfigurationError(f"{name}: {tuple(weight.shape)} in the base's files, not as its config says")
    if any(layer.lora_bias.values()):
        raise ConfigurationError(f"{name}: an adapter with biases (lora_bias) cannot be merged here")
    base.weight = torch.nn.Parameter(weight.float(), requires_grad=False)
    try:
        with torch.no_grad():
            layer.merge(safe_merge=True)
    except ValueError as exc:
        raise ConfigurationError(f"{name}: {exc}") from exc
    merged = base.weight.data.to(weight.dtype)
    base.weight = _shown(weight.shape)
    return merged
