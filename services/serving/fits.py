"""Whether a server can take an adapter: decided from PEFT's `adapter_config.json`, before anything is loaded.

The rules are vLLM's: `vllm/config/lora.py` (ranks) and `vllm/lora/peft_helper.py` (features), version 0.32.
"""

from collections.abc import Mapping
from typing import Any

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # that --max-lora-rank can be
PLAIN_INITS = ("gaussian", "eva", "orthogonal", "mica", "lora_ga")  # which leave the base as it is
REFUSED = {  # a field that is set → what that is
    "use_dora": "DoRA's magnitudes",
    "modules_to_save": "layers trained whole (modules_to_save)",
    "lora_bias": "biases in the adapter (lora_bias)",
    "alora_invocation_tokens": "tokens that switch it on (aLoRA)",
    "layer_replication": "replicated layers",
    "use_bdlora": "block-diagonal layers (BD-LoRA)",
    "use_qalora": "pooled inputs (QALoRA)",
}


def rank_for(rank: int) -> int | None:
    """The least --max-lora-rank that takes this rank; None: vLLM has none so large."""
    return next((each for each in RANKS if each >= rank), None)


def highest_rank(config: Mapping[str, Any]) -> int:
    """Of all layers: `rank_pattern` may give some their own."""
    return max(map(int, [config.get("r", 0), *(config.get("rank_pattern") or {}).values()]))


def complaint(config: Mapping[str, Any], max_rank: int) -> str | None:
    """Why a server with this --max-lora-rank refuses the adapter, and what to do; None: it takes it."""
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        return f"it is of PEFT's type {kind}, and the server takes LORA alone: merge it"
    return _of_rank(highest_rank(config), max_rank) or _of_features(config)


def _of_rank(rank: int, max_rank: int) -> str | None:
    if 1 <= rank <= max_rank:
        return None
    if rank < 1:
        return f"its rank is {rank}: expected 1 at least"
    enough = rank_for(rank)
    if enough is None:
        return f"its rank is {rank}, and vLLM takes {RANKS[-1]} at most: merge it, or train a lower lora_r"
    return (
        f"its rank is {rank}, and the server takes {max_rank} at most: start it with --max-lora-rank {enough}"
        f" and set SERVE_MAX_LORA_RANK={enough}"
    )


def _of_features(config: Mapping[str, Any]) -> str | None:
    if config.get("bias", "none") != "none":
        return f"it has biases (bias {config['bias']!r}), which the server does not take: merge it"
    for field, what in REFUSED.items():
        if config.get(field):
            return f"it has {what}, which the server does not take: merge it, or train without"
    init = config.get("init_lora_weights", True)
    if isinstance(init, str) and init.lower() not in PLAIN_INITS:
        return f"it was initialised by {init!r}, which changes the base model: convert it to a plain LoRA"
    return None
