"""A Qwen2 model of true shape with random weights: speed and memory need no trained ones.

    python bench/random_model.py 7b /dev/shm/7b

Writes config, bf16 safetensors and a stand-in byte-level tokenizer (peers insist on one); leaves a
complete folder alone. Initialised as transformers does, on the GPU where there is one: 16 s for 7B,
58 s for 32B into /dev/shm on an H200 (2 bytes a parameter there: 3, 15, 30, 66 GB).
"""

import argparse
import time
from pathlib import Path
from typing import Any

SHAPES: dict[str, dict[str, Any]] = {  # Qwen2.5-Coder's config.json; `tiny` is for tests
    "tiny": {
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "tie_word_embeddings": False,
        "vocab_size": 1024,
    },
    "1.5b": {
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
        "vocab_size": 151_936,
    },
    "7b": {
        "hidden_size": 3584,
        "intermediate_size": 18_944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "tie_word_embeddings": False,
        "vocab_size": 152_064,
    },
    "14b": {
        "hidden_size": 5120,
        "intermediate_size": 13_824,
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
        "vocab_size": 152_064,
    },
    "32b": {
        "hidden_size": 5120,
        "intermediate_size": 27_648,
        "num_hidden_layers": 64,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
        "vocab_size": 152_064,
    },
}
COMPLETE = ".complete"  # written last


def make_model(size: str, folder: Path, seed: int = 0) -> Path:
    """The folder of a random model of the size, made unless it is there already."""
    if (folder / COMPLETE).exists():
        return folder
    import torch
    from transformers import AutoModelForCausalLM, Qwen2Config

    config = Qwen2Config(
        max_position_embeddings=32_768,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        bos_token_id=None,
        **SHAPES[size],
    )
    torch.manual_seed(seed)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="4GB")
    _tokenizer().save_pretrained(folder)
    (folder / COMPLETE).touch()
    return folder


def _tokenizer() -> Any:
    """Bytes as tokens, with Qwen's special tokens and a ChatML template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={byte: i for i, byte in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
    )
    fast.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    return fast


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("size", choices=SHAPES)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    started = time.perf_counter()
    make_model(options.size, options.folder)
    print(f"{options.folder}: {options.size}, {time.perf_counter() - started:.1f} s")
