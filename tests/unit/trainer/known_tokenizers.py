# ruff: noqa: E501  # templates as their models have them
"""Small true tokenizers with the special tokens, templates and manners of known models."""

import functools
import string

from tokenizers import AddedToken, ByteLevelBPETokenizer, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers as pre
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from tests.tiny_model import standard_library

# How Qwen2.5 and Llama 3 divide a text before they look for tokens (Llama 3 takes up to three digits).
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>'"
    " + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
QWEN = (
    "{%- if messages[0]['role'] == 'system' %}\n    {{- '<|im_start|>system\n' + messages[0]['content'] +"
    " '<|im_end|>\n' }}\n{%- else %}\n    {{- '<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are"
    " a helpful assistant.<|im_end|>\n' }}\n{%- endif %}\n{%- for message in messages %}\n    {%- if (message.role =="
    ' "user") or (message.role == "system" and not loop.first) or (message.role == "assistant") %}\n        {{-'
    " '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}\n    {%- endif %}\n{%- endfor"
    " %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\n' }}\n{%- endif %}\n"
)
LLAMA3 = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' +"
    " message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0"
    " %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou"
    " are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' +"
    " message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA2 = (
    "{% for message in messages %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + message['content'] |"
    " trim + ' [/INST]' }}{% else %}{{ ' '  + message['content'] | trim + ' ' + eos_token }}{% endif %}{% endfor %}"
)
MARKED = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] }}<|im_end|>{% endgeneration %}{% else %}{{ message['content'] }}"
    "<|im_end|>{% endif %}\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FIM = ["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"]
KNOWN = {  # name → template, special tokens (beginning and end of a text first), how it divides a text
    "chatml": (CHATML, ["<|endoftext|>", "<|im_end|>", "<|im_start|>"], None),
    "marked": (MARKED, ["<|endoftext|>", "<|im_end|>", "<|im_start|>"], None),
    "qwen": (
        QWEN,
        ["<|endoftext|>", "<|im_end|>", "<|im_start|>", *FIM, "<|repo_name|>", "<|file_sep|>"],
        PATTERN,
    ),
    "llama3": (
        LLAMA3,
        ["<|begin_of_text|>", "<|eot_id|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>"],
        PATTERN,
    ),
    "smollm2": (
        SMOLLM2,
        ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>", "<file_sep>"],
        None,
    ),
    "starcoder2": (
        "", ["<|endoftext|>", "<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<repo_name>",
             "<file_sep>"], None,
    ),
    "deepseek": (
        "", ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"],
        PATTERN,
    ),
    "codestral": ("", ["<s>", "</s>", "[PREFIX]", "[SUFFIX]", "[MIDDLE]"], PATTERN),
}  # fmt: skip
ADDS_BEGIN = ("llama3", "deepseek", "codellama")


@functools.cache
def tokenizer(name: str) -> PreTrainedTokenizerFast:
    """The tokenizer of that name, as a fast one of transformers."""
    if name == "codellama":
        return _llama2()
    template, special, pattern = KNOWN[name]
    bpe = Tokenizer.from_str(_trained(pattern))
    # As Qwen2.5's own: some of its tokens are not declared special.
    bpe.add_tokens(
        [AddedToken(each, special="fim" not in each, normalized=False) for each in dict.fromkeys(special)]
    )
    if name in ADDS_BEGIN:
        first = (special[0], bpe.token_to_id(special[0]))
        bpe.post_processor = TemplateProcessing(single=f"{special[0]} $A", special_tokens=[first])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token=special[0], eos_token=special[1], chat_template=template or None
    )


@functools.cache
def _trained(pattern: str | None) -> str:
    bpe = ByteLevelBPETokenizer()
    if pattern is not None:
        bpe._tokenizer.pre_tokenizer = pre.Sequence(
            [pre.Split(Regex(pattern), "isolated"), pre.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
    bpe.train([str(path) for path in standard_library(12)], vocab_size=700, show_progress=False)
    return bpe._tokenizer.to_str()


def _llama2() -> PreTrainedTokenizerFast:
    """SentencePiece's manner: a space before every text, bytes for what it does not know."""
    tokens = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        *string.printable[:94],
    ]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    bpe = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    bpe.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    bpe.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    bpe.add_special_tokens([AddedToken(each, normalized=False) for each in ("<unk>", "<s>", "</s>")])
    bpe.add_tokens(
        [
            AddedToken(each, special=True, normalized=False)
            for each in ("▁<PRE>", "▁<MID>", "▁<SUF>", "▁<EOT>")
        ]
    )
    bpe.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", unk_token="<unk>", chat_template=LLAMA2
    )
