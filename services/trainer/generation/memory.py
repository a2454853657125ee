"""How many rows are written at once: as many as their keys and values find room for."""

from typing import Any

import torch

ROWS_ON_CPU = 16
MOST_ROWS = 512  # beyond which a GPU multiplies no faster
SHARE_OF_FREE = 0.8  # of a device's free memory
LOGITS_COPIES = 6  # float32 tensors of a row's vocabulary that sampling holds at once
SLACK = 1.25  # times the cache: a layer is copied when it grows


def free_bytes(model: Any) -> int | None:
    """What generation may take on the model's device; None on the CPU, where nobody counts."""
    if model.device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(model.device)
    reserved = torch.cuda.memory_reserved(model.device) - torch.cuda.memory_allocated(model.device)
    return int(SHARE_OF_FREE * (free + reserved))


def token_bytes(config: Any, item_bytes: int) -> int:
    """Of keys and values of one token in every layer."""
    config = config.get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(2 * config.num_hidden_layers * heads * width * item_bytes)


def rows(config: Any, item_bytes: int, tokens: int, memory_bytes: int | None) -> int:
    """How many rows of so many tokens fit, one at least."""
    if memory_bytes is None:
        return ROWS_ON_CPU
    logits = 4 * LOGITS_COPIES * config.get_text_config().vocab_size
    a_row = SLACK * tokens * token_bytes(config, item_bytes) + logits
    return max(1, min(MOST_ROWS, int(memory_bytes / a_row)))
