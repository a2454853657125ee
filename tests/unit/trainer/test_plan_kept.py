"""What a layer keeps for its backward pass, counted in the engine itself."""

from functools import partial

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

from services.trainer.engine import attention
from services.trainer.engine.batch import batch_of
from services.trainer.engine.compute import Compute
from services.trainer.packing import Row
from services.trainer.plan import Hardware, Job, Shape
from services.trainer.plan.memory import kept_by_layer
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.sample import Sample

TOKENS = 128
CONFIG = {
    "hidden_size": 256, "intermediate_size": 640, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 100,
}  # fmt: skip
PARTITIONER = "aot_eager_decomp_partition"  # decides what to keep as inductor does, without its code


def saved_bytes(layers: int, targets, *, compiled: bool) -> int:
    """Of all tensors that a forward pass saves, weights aside."""
    torch.manual_seed(0)
    config = AutoConfig.for_model("llama", num_hidden_layers=layers, **CONFIG)
    model = AutoModelForCausalLM.from_config(
        config, dtype=torch.bfloat16, attn_implementation=attention.register()
    )
    model = get_peft_model(model, LoraConfig(r=8, target_modules=targets, task_type="CAUSAL_LM")).train()
    compute = Compute(model, keep_merged=True, compiled=compiled)
    ids = tuple(number % 100 for number in range(TOKENS))
    batch = batch_of([Row((Sample(1, ids, 0, 0, 0, 0),))], 0, TOKENS)
    weights = {one.untyped_storage().data_ptr() for one in (*model.parameters(), *model.buffers())}
    saved: dict[int, torch.Tensor] = {}  # kept alive, so that no address is used twice

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().data_ptr() not in weights:
            saved.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        compute.loss(batch)
    return sum(tensor.untyped_storage().nbytes() for tensor in saved.values())


@pytest.mark.parametrize(
    ("targets", "compiled"),
    [("all-linear", False), (["q_proj", "v_proj"], False), (["down_proj"], False), ("all-linear", True)],
)
def test_a_layer_keeps_what_the_plan_says(monkeypatch, targets, compiled):
    """To the byte, in bf16 as on a GPU. Only the CPU lays attention's output out anew for `o_proj`."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=PARTITIONER))
    a_layer = saved_bytes(3, targets, compiled=compiled) - saved_bytes(2, targets, compiled=compiled)
    recipe = Recipe(
        name="any", base_model="any", method="lora", lora_r=8, compile=compiled,
        target_modules=[targets] if isinstance(targets, str) else targets,
    )  # fmt: skip
    shape = Shape.from_config({**CONFIG, "num_hidden_layers": 2})
    job = Job(shape, recipe, Hardware.gpu("H200"), TOKENS)
    copied = 2 * shape.attention if "o_proj" in shape.targets(recipe) else 0
    assert a_layer / TOKENS == kept_by_layer(job) + copied
