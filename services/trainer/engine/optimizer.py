"""The optimizer of a round and its state as named tensors: AdamW in float32, or with 8-bit moments.

Loshchilov & Hutter, "Decoupled Weight Decay Regularization", 2019; Dettmers et al., "8-bit Optimizers via
Block-wise Quantization", 2022.
"""

from collections.abc import Mapping
from typing import Any

import torch

from services.trainer.recipes.recipe import Recipe

EPSILON = 1e-8


def make(parameters: Mapping[str, torch.nn.Parameter], recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW over the parameters, decaying matrices only; the learning rate is set before each step."""
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters.values() if p.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in parameters.values() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    options = {"lr": recipe.learning_rate, "betas": recipe.adam_betas, "eps": EPSILON}
    if not _in_8_bits(parameters, recipe):
        return torch.optim.AdamW(groups, **options, fused=True)
    import bitsandbytes

    library: Any = bitsandbytes.optim  # without types
    made: torch.optim.Optimizer = library.AdamW8bit(groups, **options)
    return made


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def state_of(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, torch.nn.Parameter]
) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
    """Moments and counters by `parameter name::kind`: what is a tensor, and what is a number."""
    tensors: dict[str, torch.Tensor] = {}
    numbers: dict[str, float] = {}
    for name, parameter in parameters.items():
        for kind, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                tensors[f"{name}::{kind}"] = value
            else:
                numbers[f"{name}::{kind}"] = value
    return tensors, numbers


def restore(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, torch.nn.Parameter],
    tensors: Mapping[str, torch.Tensor],
    numbers: Mapping[str, float],
) -> None:
    """Back to what `state_of` gave, here or in another process; tensors go where their parameters are."""
    optimizer.state.clear()
    for key, value in {**tensors, **numbers}.items():
        name, _, kind = key.rpartition("::")
        parameter = parameters[name]
        here = value.to(parameter.device) if isinstance(value, torch.Tensor) else value
        optimizer.state.setdefault(parameter, {})[kind] = here


def _in_8_bits(parameters: Mapping[str, torch.nn.Parameter], recipe: Recipe) -> bool:
    if recipe.optimizer != "auto":
        return recipe.optimizer == "adamw_8bit"
    return all(one.is_cuda for one in parameters.values())
