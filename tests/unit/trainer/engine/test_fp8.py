"""Products in FP8, emulated on the CPU: near the exact ones, and what the adapter learns is exact."""

import copy

import torch

from services.trainer.engine import fp8
from services.trainer.engine.batch import batch_of
from services.trainer.engine.compute import Compute
from services.trainer.packing import pack
from tests.unit.trainer.engine import tiny


def test_a_product_is_near_the_exact_one() -> None:
    """3 bits of mantissa: each value is off by at most 1/16, the sum by much less."""
    torch.manual_seed(0)
    left, right = torch.randn(64, 256), torch.randn(48, 256)
    product = fp8.times(fp8.rounded(left), fp8.rounded(right), torch.float32)
    exact = left @ right.T
    assert (product - exact).norm() / exact.norm() < 0.05


def test_rows_of_zeros_stay_zeros() -> None:
    zeros = fp8.rounded(torch.zeros(16, 32))
    assert not torch.isnan(zeros.values.float()).any()
    assert not fp8.times(zeros, fp8.rounded(torch.randn(16, 32)), torch.float32).any()


def test_large_and_small_rows_are_rounded_alike() -> None:
    """A scale for each row: a row a million times smaller loses nothing more."""
    torch.manual_seed(0)
    matrix = torch.randn(16, 64)
    scaled = matrix * torch.logspace(-6, 6, 16)[:, None]
    for one in (matrix, scaled):
        values, scales = fp8.rounded(one)
        error = (values.float() * scales - one).norm(dim=1) / one.norm(dim=1)
        assert error.max() < 0.04


def test_loss_and_gradients_follow_the_exact_ones() -> None:
    """Of a whole model with adapters, through the engine."""
    exact = tiny.adapted()
    rough = copy.deepcopy(exact)
    rows = pack(tiny.samples(12), tiny.LENGTH)[:4]
    losses, gradients = [], []
    for model, in_fp8 in ((exact, False), (rough, True)):
        model.train()
        loss = Compute(model, in_fp8=in_fp8).loss(batch_of(rows, tiny.PAD, tiny.LENGTH))
        loss.backward()
        losses.append(float(loss))
        gradients.append(
            torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None])
        )
    assert abs(losses[1] - losses[0]) / losses[0] < 0.01
    assert losses[0] != losses[1]
    assert torch.cosine_similarity(*gradients, dim=0) > 0.98
