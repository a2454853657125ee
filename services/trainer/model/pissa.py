"""PiSSA: adapters begin as the base's principal singular vectors, which the base gives up for the round.

Meng, Wang & Zhang, "PiSSA: Principal Singular Values and Singular Vectors Adaptation of Large Language
Models", 2024: W = U S Vᵀ; B₀ = U_r √S_r, A₀ = √S_r V_rᵀ, and the base is W − s·B₀·A₀ while they are trained.

PEFT's own option decomposes anew in every process and after every crash, and its random projections come out
differently each time, while checkpoints hold adapters of the first. Here the decomposition is made
once and kept in the round's folder. What is published is a plain LoRA of the original base:
s·(B·A − B₀·A₀) = s·[B, −B₀]·[A; A₀], of twice the rank. A next round goes on from that as from any LoRA:
with twice the rank and without decomposing again.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from peft.tuners.lora.layer import LoraLayer
from safetensors.torch import load_file, save_file

from services.core.errors import ConfigurationError
from services.trainer.engine.distributed import Distribution
from services.trainer.recipes.recipe import Recipe

START = "pissa-start.safetensors"
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"  # PEFT's names
ITERATIONS = 16  # of the randomised decomposition: Halko, Martinsson & Tropp 2011, as in the paper


def check(recipe: Recipe) -> None:
    """Raises ConfigurationError where the base cannot give anything up, or not give it back exactly."""
    if recipe.method == "qlora":
        raise ConfigurationError(
            "init_lora_weights pissa takes the principal part out of the base's weights; method qlora has"
            " them in NF4, and a base quantised without that part is not the one served: say method lora, or"
            " init_lora_weights default"
        )
    if recipe.use_dora:
        raise ConfigurationError(
            "init_lora_weights pissa with use_dora: DoRA's magnitudes are of a base that gave its principal"
            " part up, and do not hold for the one served: leave one of the two out"
        )


def begin(adapted: Any, folder: Path, distribution: Distribution) -> None:
    """Put the principal part into the adapters and take it from the base, as kept or made now."""
    kept = folder / START
    distribution.agree(lambda: kept.is_file() or _keep(_principal(adapted, distribution.device), kept))
    start = load_file(kept)
    for name, layer, adapter in _layers(adapted):
        a, b = start[f"{name}.lora_A.weight"], start[f"{name}.lora_B.weight"]
        base = layer.get_base_layer().weight
        a, b = a.to(base.device), b.to(base.device)
        layer.lora_A[adapter].weight.data.copy_(a)
        layer.lora_B[adapter].weight.data.copy_(b)
        base.data.copy_(base.data.float() - layer.scaling[adapter] * (b @ a))


def convert(published: Path, folder: Path) -> None:
    """Make the adapter that PEFT wrote one of the original base, in place."""
    trained, start = load_file(published / WEIGHTS), load_file(folder / START)
    joined = {}
    for name, tensor in trained.items():
        before = start[name]
        is_a = name.endswith("lora_A.weight")
        joined[name] = torch.cat([tensor, before] if is_a else [tensor, -before], dim=0 if is_a else 1)
    save_file(joined, published / WEIGHTS, metadata={"format": "pt"})
    config = json.loads((published / CONFIG).read_text(encoding="utf-8"))
    config["r"] *= 2
    config["lora_alpha"] *= 2**0.5 if config["use_rslora"] else 2  # the scaling stays what it was
    (published / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True), encoding="utf-8")


@torch.no_grad()
def _principal(adapted: Any, device: torch.device) -> dict[str, torch.Tensor]:
    """A₀ (r, in) and B₀ (out, r) of every layer, by the names PEFT publishes them under."""
    parts = {}
    for name, layer, adapter in _layers(adapted):
        weight = layer.get_base_layer().weight.to(device, torch.float32)  # (out, in)
        rank = layer.r[adapter]
        if rank > min(weight.shape):
            raise ConfigurationError(
                f"lora_r {rank}: PiSSA takes so many singular values, {name} has {min(weight.shape)}"
            )
        left, values, right = torch.svd_lowrank(weight, rank, niter=ITERATIONS)
        root = (values / layer.scaling[adapter]).sqrt()
        parts[f"{name}.lora_A.weight"] = (right * root).T.contiguous().cpu()
        parts[f"{name}.lora_B.weight"] = (left * root).contiguous().cpu()
    return parts


def _keep(parts: dict[str, torch.Tensor], path: Path) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}")
    save_file(parts, temporary)
    os.replace(temporary, path)
    return True


def _layers(adapted: Any) -> Iterator[tuple[str, Any, str]]:
    """Every adapted layer: its name as PEFT publishes it, itself, its adapter's name."""
    for name, part in adapted.named_modules():
        if isinstance(part, LoraLayer):
            yield name, part, part.active_adapters[0]
