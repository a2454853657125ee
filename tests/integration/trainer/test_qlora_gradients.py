"""QLoRA on the CPU: gradients after an evaluation are those before it.

bitsandbytes 0.50 repacks NF4 weights for CPUs with AVX512-BF16 at the first pass in evaluation mode, and the
gradients of later training passes then go nowhere, silently. On other CPUs these tests hold without a guard.
"""

from pathlib import Path

import torch

from services.trainer import evaluate, model
from services.trainer.engine.batch import batch_of
from services.trainer.engine.compute import Compute
from services.trainer.model.locate import Source
from services.trainer.packing import pack
from tests.unit.trainer.engine import tiny


def test_gradients_after_an_evaluation_are_those_before_it(tiny_model: Path, tmp_path: Path) -> None:
    """Every adapter's, not a bit different."""
    recipe = tiny.recipe(method="qlora", base_model=str(tiny_model), lora_r=8, max_length=64)
    base = model.load_base(recipe, Source(str(tiny_model), None))
    assert not any(getattr(part, "support_avx512bf16_for_cpu", False) for part in base.modules())
    trained = model.for_training(base, recipe, None, tmp_path)
    for name, parameter in trained.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.05)
    compute = Compute(trained)
    rows = pack(tiny.samples(12), 64)

    def gradients() -> dict[str, torch.Tensor]:
        trained.train()
        trained.zero_grad()
        compute.loss(batch_of(rows, 0, 64)).backward()
        return {name: one.grad.clone() for name, one in trained.named_parameters() if one.requires_grad}

    before = gradients()
    evaluate.losses(compute, rows, rows_at_once=2, pad_id=0, longest=64)
    after = gradients()
    assert all(float(gradient.abs().max()) > 0 for gradient in before.values())
    assert all(torch.equal(after[name], gradient) for name, gradient in before.items())
