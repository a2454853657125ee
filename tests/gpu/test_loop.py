"""What only a GPU shows of the training loop: 8-bit moments across an interruption, memory that runs out."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

from services.trainer.engine import attention
from services.trainer.engine import optimizer as optimizers
from services.trainer.engine.saving import Saving
from services.trainer.interruption import Interrupted
from services.trainer.packing import pack
from tests.unit.trainer.engine import tiny
from tests.unit.trainer.engine.tiny import Round, recipe

WIDTH = 1024  # adapters of rank 16 then have 16,384 weights: from 4,096 on moments are kept in 8 bits


def wide() -> Any:
    config = LlamaConfig(**{**tiny.SHAPE, "hidden_size": WIDTH, "intermediate_size": 4 * WIDTH})
    torch.manual_seed(1)
    model = LlamaForCausalLM._from_config(config, attn_implementation=attention.register())
    model = model.to("cuda", torch.bfloat16).requires_grad_(False)
    torch.manual_seed(2)
    adapted = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"))
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    return adapted


def test_moments_of_8_bits_come_back_bit_for_bit(tmp_path: Path) -> None:
    """As they were when the training was interrupted, and it ends as one that never was."""
    chosen = recipe(learning_rate=1e-3, early_stopping_threshold=0)
    asked = 0

    def stop(_: Round) -> bool:
        nonlocal asked
        asked += 1
        return asked == 14

    whole = Round(tmp_path / "whole", chosen, wide()).train()
    first = Round(tmp_path / "parts", chosen, wide())
    with pytest.raises(Interrupted):
        first.train(stop)
    second = Round(tmp_path / "parts", chosen, wide())
    setup = second.setup
    state = Saving(setup.folder, setup.parameters, setup.optimizer, setup.distribution).restore_newest()
    assert state is not None
    assert state.step > 0
    saved, restored = (
        optimizers.state_of(one.setup.optimizer, one.setup.parameters)[0] for one in (first, second)
    )
    assert any(value.dtype == torch.uint8 for value in saved.values())
    assert saved.keys() == restored.keys()
    assert all(torch.equal(value, restored[key]) for key, value in saved.items())
    resumed = Round(tmp_path / "parts", chosen, wide()).train()
    assert resumed.steps == whole.steps
    assert resumed.eval_loss == pytest.approx(whole.eval_loss, rel=2e-3)  # backward sums in any order


def test_a_gpu_that_is_too_small_gets_smaller_micro_batches(tmp_path: Path) -> None:
    """The allocator's own error; the effective batch stays, and every step is made."""
    rows = pack(tiny.samples(4000), tiny.LENGTH)
    chosen = recipe(batch_size=512, gradient_accumulation_steps=1, epochs=1, early_stopping_threshold=0)
    one = Round(tmp_path, chosen, wide(), rows)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    limit = torch.cuda.memory_reserved() + 2**30
    torch.cuda.set_per_process_memory_fraction(limit / total)
    try:
        training = one.train()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert training.ran_out_of_memory >= 1
    assert training.micro_batch < 512
    assert training.steps == training.total_steps
