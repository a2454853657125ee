"""Low-rank adapters on a frozen base: made by PEFT from a recipe, or a champion's to go on from.

Adapters are float32 (the masters) whatever the base is in: PEFT casts them so. The base is only frozen.
`prepare_model_for_kbit_training` would also make its norms float32, which the fused layers would have to cast
back for every product, and switch on a recomputation that the engine has itself.
"""

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftConfig, PeftModel, get_peft_model

from services.core.errors import ConfigurationError
from services.trainer.engine.distributed import ALONE, Distribution
from services.trainer.model import pissa
from services.trainer.recipes.recipe import Recipe

CONFIG = "adapter_config.json"


def with_adapter(
    base: Any,
    recipe: Recipe,
    champion: Path | None,
    start: Path | None = None,
    distribution: Distribution = ALONE,
) -> Any:
    """The base, frozen, with one trainable adapter: the champion's, to go on from, or a fresh one.

    start: a folder that lives as long as the round, where PiSSA keeps what its adapters began as.
    Raises ConfigurationError when a target module is not in the architecture or the way of making
    adapters cannot be on this base.
    """
    base.requires_grad_(requires_grad=False)
    if champion is not None:
        config = PeftConfig.from_pretrained(str(champion))
        config.lora_dropout = recipe.lora_dropout
        return PeftModel.from_pretrained(
            base, str(champion), is_trainable=True, config=config, torch_device=str(base.device)
        )
    by_singular_values = recipe.init_lora_weights == "pissa"
    if by_singular_values:
        pissa.check(recipe)
    config = config_of(base, recipe)
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        adapted = get_peft_model(base, config)
        if by_singular_values:
            if start is None:
                raise ValueError("PiSSA needs a folder to keep what its adapters began as")
            pissa.begin(adapted, start, distribution)
    return adapted


def config_of(base: Any, recipe: Recipe) -> LoraConfig:
    """What PEFT makes the recipe's adapters of.

    Raises ConfigurationError when a target module is not in the architecture.
    """
    _check_targets(base, recipe)
    return LoraConfig(
        r=recipe.lora_r,
        lora_alpha=recipe.lora_alpha,
        lora_dropout=recipe.lora_dropout,
        target_modules="all-linear" if _everything(recipe) else list(recipe.target_modules),
        use_dora=recipe.use_dora,
        use_rslora=recipe.use_rslora,
        task_type="CAUSAL_LM",
    )


def save(adapted: Any, folder: Path, start: Path | None) -> None:
    """Write the adapter as PEFT does, for the plain base: what PiSSA took from that is put back first."""
    adapted.save_pretrained(folder, save_embedding_layers=False)
    if start is not None and (start / pissa.START).is_file():
        pissa.convert(folder, start)


def _everything(recipe: Recipe) -> bool:
    return tuple(recipe.target_modules) == ("all-linear",)


def _check_targets(base: Any, recipe: Recipe) -> None:
    """PEFT minds only when none of the named modules is there; one that is not is a slip of the pen."""
    layers = [name for name, part in base.named_modules() if isinstance(part, torch.nn.Linear)]
    linear = {name.rpartition(".")[2] for name in layers}
    named = [] if _everything(recipe) else recipe.target_modules
    missing = sorted(name for name in named if not any(f".{layer}".endswith(f".{name}") for layer in layers))
    if missing:
        raise ConfigurationError(
            f"target_modules {missing}: not in this architecture (its linear layers: {sorted(linear)})"
        )
