"""A random Llama or Qwen2 of 2 layers with a true tokenizer, and a recipe that the Llama learns by."""

import sysconfig
from pathlib import Path

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
IN_REPOSITORIES = (  # as Qwen2.5-Coder has them
    "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>",
)  # fmt: skip
SHAPE = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
RECIPE = """\
base_model: {model}
method: lora
lora_r: 8
learning_rate: 0.005
max_length: 512
batch_size: 2
gradient_accumulation_steps: 1
held_out_min: 12
confidence: 0.6
validation_min: 4
held_out_pairs: 1
eval_steps: 5
early_stopping_threshold: 0.0
general_suite: null
completion_items: 0
gradient_checkpointing: false
"""


def standard_library(most: int) -> list[Path]:
    """Real code: modules of the standard library between 2 and 6 kB."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    return [path for path in sorted(folder.glob("*/*.py")) if 2000 < path.stat().st_size < 6000][:most]


def make(folder: Path, *, qwen: bool = False, instruct: bool = True) -> Path:
    """Write the model and its tokenizer into `folder`.

    qwen: a Qwen2, whose tokenizer has tokens for fill-in-the-middle and for repositories; otherwise a Llama.
    instruct: with a chat template.
    """
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import (
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedTokenizerFast,
        Qwen2Config,
        Qwen2ForCausalLM,
    )

    bpe = ByteLevelBPETokenizer()
    bpe.train(
        [str(path) for path in standard_library(40)],
        vocab_size=1000,
        special_tokens=[*SPECIAL, *(IN_REPOSITORIES if qwen else ())],
        show_progress=False,
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer,
        eos_token="<|im_end|>" if instruct else "<|endoftext|>",
        pad_token="<|endoftext|>",
        chat_template=TEMPLATE if instruct else None,
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = {
        "vocab_size": len(tokenizer), "num_key_value_heads": 2, "max_position_embeddings": 2048, **SHAPE
    }  # fmt: skip
    made = Qwen2ForCausalLM(Qwen2Config(**shape)) if qwen else LlamaForCausalLM(LlamaConfig(**shape))
    made.save_pretrained(folder)
    return folder


def recipe(folder: Path, model: Path) -> Path:
    """A recipe file for the model: a round of seconds."""
    path = folder / "tiny.yaml"
    path.write_text(RECIPE.format(model=model), encoding="utf-8")
    return path
