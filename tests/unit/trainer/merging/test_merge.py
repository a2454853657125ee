"""An adapter merged file by file is the adapter on its base, for every kind of adapter there is."""

import json
from copy import deepcopy
from functools import partial

import pytest
import torch
from peft import IA3Config, LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from services.core.errors import ConfigurationError
from services.trainer.merging import merge, stored
from services.trainer.model import Source

SHAPE = {
    "vocab_size": 120, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip
IDS = torch.arange(2, 42)[None]
ATTENTION = ["q_proj", "v_proj"]


def base(folder, *, qwen=False, tied=False, dtype=torch.float32, **save):
    torch.manual_seed(1)
    kind, config = (Qwen2ForCausalLM, Qwen2Config) if qwen else (LlamaForCausalLM, LlamaConfig)
    kind(config(**SHAPE, tie_word_embeddings=tied)).to(dtype).save_pretrained(folder, **save)
    return folder


def adapter(of, folder, config):
    """Saved as PEFT saves it, every weight of it random."""
    adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(of, dtype=torch.float32), deepcopy(config))
    torch.manual_seed(2)
    for name, weight in adapted.named_parameters():
        if "lora_" in name and "magnitude" not in name:
            weight.data.normal_(std=0.1)
        elif "magnitude" in name:
            weight.data.mul_(1 + 0.1 * torch.rand_like(weight))
        elif "modules_to_save" in name:
            weight.data.add_(0.1 * torch.randn_like(weight))
    adapted.save_pretrained(folder)
    return folder


def merged(of, its, folder):
    folder.mkdir()
    merge.prepared(stored.stored(Source(str(of), None)), its).write(folder)
    return folder


@torch.no_grad()
def logits(folder, its=None):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return (model if its is None else PeftModel.from_pretrained(model, its)).eval()(IDS).logits


lora = partial(LoraConfig, r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
KINDS = {
    "lora": lora(),
    "rank-stabilised": lora(use_rslora=True),
    "dora": lora(use_dora=True),
    "some modules": lora(target_modules=ATTENTION),
    "ranks by pattern": lora(rank_pattern={"q_proj": 2}, alpha_pattern={"q_proj": 32}),
    "embeddings adapted": lora(target_modules=["embed_tokens", *ATTENTION]),
    "head adapted": lora(target_modules=["lm_head", *ATTENTION]),
    "head saved": lora(modules_to_save=["lm_head"]),
    "embeddings and norms saved": lora(target_modules=ATTENTION, modules_to_save=["embed_tokens", "norm"]),
}


UNTIED_TOO = ("lora", "head adapted", "embeddings and norms saved")


@pytest.mark.parametrize(
    ("kind", "tied"), [*((kind, True) for kind in KINDS), *((kind, False) for kind in UNTIED_TOO)]
)
def test_it_answers_as_the_adapter_on_its_base(tmp_path, kind, tied):
    of = base(tmp_path / "base", tied=tied)
    its = adapter(of, tmp_path / "adapter", KINDS[kind])
    found = logits(merged(of, its, tmp_path / "merged"))
    expected = logits(of, its)
    assert (expected - logits(of)).abs().max() > 0.05
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


def test_biases_of_the_base_stay(tmp_path):
    of = base(tmp_path / "base", qwen=True, tied=True)
    its = adapter(of, tmp_path / "adapter", KINDS["lora"])
    torch.testing.assert_close(
        logits(merged(of, its, tmp_path / "merged")), logits(of, its), atol=2e-5, rtol=1e-4
    )


def test_weights_are_rounded_once_to_the_bases_type(tmp_path):
    """In bfloat16 every merged weight is the float32 sum, rounded."""
    of = base(tmp_path / "base", dtype=torch.bfloat16)
    its = adapter(of, tmp_path / "adapter", KINDS["lora"])
    found = load_file(merged(of, its, tmp_path / "merged") / "model.safetensors")
    whole = AutoModelForCausalLM.from_pretrained(of, dtype=torch.float32)
    exact = PeftModel.from_pretrained(whole, its).merge_and_unload().state_dict()
    assert {tensor.dtype for tensor in found.values()} == {torch.bfloat16}
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, exact[name].bfloat16(), atol=0, rtol=0)


def test_files_and_index_are_the_bases(tmp_path):
    of = base(tmp_path / "base", max_shard_size="30KB")
    its = adapter(of, tmp_path / "adapter", KINDS["lora"])
    folder = merged(of, its, tmp_path / "merged")
    names = sorted(path.name for path in of.glob("*.safetensors"))
    assert len(names) > 2
    assert sorted(path.name for path in folder.glob("*.safetensors")) == names
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"].values()) == set(names)
    torch.testing.assert_close(logits(folder), logits(of, its), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("another size", "does not fit"),
        ("a layer too many", "has no such layer"),
        ("not finite", "NaNs"),
        ("another method", "LoRA is what can be merged"),
        ("stored quantised", "stored quantised"),
    ],
)
def test_what_would_be_left_out_or_broken_is_refused(tmp_path, spoil, said):
    of = base(tmp_path / "base")
    its = adapter(of, tmp_path / "adapter", KINDS["lora"])
    weights = load_file(its / "adapter_model.safetensors")
    first = min(weights)
    if spoil == "another size":
        weights[first] = torch.zeros(4, 99)
    elif spoil == "a layer too many":
        weights[first.replace("layers.0", "layers.7")] = weights[first].clone()
    elif spoil == "not finite":
        weights[first][:] = torch.nan
    elif spoil == "another method":
        wrapped = get_peft_model(AutoModelForCausalLM.from_pretrained(of), IA3Config(task_type="CAUSAL_LM"))
        wrapped.save_pretrained(its)
    else:
        config = json.loads((of / "config.json").read_text())
        (of / "config.json").write_text(json.dumps({**config, "quantization_config": {}}))
    if spoil != "another method":
        save_file(weights, its / "adapter_model.safetensors")
    with pytest.raises(ConfigurationError, match=said):
        merged(of, its, tmp_path / "merged")
