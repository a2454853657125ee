"""A LoRA as PEFT writes it, without torch: random weights of any size, never more than a piece in memory."""

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path

PIECE_BYTES = 2**24
BYTES = {"F32": 4, "BF16": 2, "I64": 8}
TINY = {"q_proj": (64, 64), "v_proj": (64, 32)}  # width in and out, as tests/tiny_model has them
QWEN_14B = {  # Qwen2.5-14B: hidden 5120, intermediate 13,824, 8 key-value heads of 128
    "q_proj": (5120, 5120), "k_proj": (5120, 1024), "v_proj": (5120, 1024), "o_proj": (5120, 5120),
    "gate_proj": (5120, 13824), "up_proj": (5120, 13824), "down_proj": (13824, 5120),
}  # fmt: skip


def make(
    folder: Path,
    seed: int = 0,
    *,
    rank: int = 8,
    layers: int = 2,
    linear: Mapping[str, tuple[int, int]] = TINY,
    **changed: object,
) -> None:
    """Write adapter_config.json and adapter_model.safetensors into the folder.

    changed: fields of the config that are to be otherwise.
    """
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "auto_mapping": None, "bias": "none",
        "base_model_name_or_path": "tiny", "r": rank, "lora_alpha": 2 * rank,
        "target_modules": sorted(linear), "megatron_config": None, "megatron_core": "megatron.core",
        "rank_pattern": {}, "alpha_pattern": {}, "init_lora_weights": True, **changed,
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    safetensors(folder / "adapter_model.safetensors", shapes(rank, layers, linear), seed)


def shapes(rank: int, layers: int, linear: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """A (r, in) and B (out, r) of every linear part, by the names PEFT gives them."""
    found = {}
    for layer in range(layers):
        for name, (inputs, outputs) in linear.items():
            part = "self_attn" if name[0] in "qkvo" else "mlp"
            module = f"base_model.model.model.layers.{layer}.{part}.{name}"
            found[f"{module}.lora_A.weight"] = (rank, inputs)
            found[f"{module}.lora_B.weight"] = (outputs, rank)
    return found


def safetensors(
    path: Path, shapes_: Mapping[str, tuple[int, ...]], seed: int = 0, dtype: str = "F32"
) -> None:
    """Random bytes under a sound header."""
    header, at = {}, 0
    for name, shape in shapes_.items():
        size = math.prod(shape) * BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    encoded = json.dumps(header).encode()
    chance = random.Random(seed)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        while at:
            piece = min(at, PIECE_BYTES)
            file.write(chance.randbytes(piece))
            at -= piece
