"""Which parts of a decoder are fused: those that compute what the fused kernels do."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import GemmaConfig, GemmaForCausalLM
from transformers.models.glm import modeling_glm
from transformers.models.llama import modeling_llama
from transformers.models.qwen2 import modeling_qwen2

from services.trainer.engine import fusing
from tests.unit.trainer.engine import tiny


def made(family: str) -> Any:
    return tiny.base(family)


def forwards(model: Any) -> set[str]:
    """The kinds of parts whose forward is no longer their class's."""
    return {type(part).__name__ for part in model.modules() if "forward" in vars(part)}


@pytest.fixture(autouse=True)
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of the kernels, which only a GPU has, what they compute."""
    stand_in = SimpleNamespace(gated=fusing.gated_plainly, rotated=fusing.rotated_plainly)
    monkeypatch.setitem(sys.modules, "services.trainer.engine.fused_kernels", stand_in)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_fused_model_says_what_it_said(family: str) -> None:
    """And its inputs get the same gradients."""
    plain, fused = made(family), made(family)
    fusing.fuse(fused)
    ids = torch.arange(3, 40)[None]
    slopes = []
    for model in (plain, fused):
        embedded = model.get_input_embeddings()(ids).detach().requires_grad_()
        logits = model(inputs_embeds=embedded).logits
        logits.square().sum().backward()
        slopes.append((logits.detach(), embedded.grad))
    torch.testing.assert_close(slopes[1], slopes[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_norms_gates_and_attention_are_fused(family: str) -> None:
    model = made(family)
    fusing.fuse(model)
    kinds = forwards(model)
    assert len(kinds) == 3
    assert all(any(part in kind for kind in kinds) for part in ("RMSNorm", "MLP", "Attention"))


def test_a_norm_or_gate_of_another_formula_stays() -> None:
    """Gemma's norms multiply by one plus the weight, its gates are no SiLU."""
    model = GemmaForCausalLM(GemmaConfig(**{**tiny.SHAPE, "head_dim": 8, "hidden_act": "gelu_pytorch_tanh"}))
    with torch.no_grad():
        for part in model.modules():
            if type(part).__name__ == "GemmaRMSNorm":
                part.variance_epsilon = 1e-6
    fusing.fuse(model)
    assert not {kind for kind in forwards(model) if "Norm" in kind or "MLP" in kind}


def test_a_rotation_of_neighbours_stays() -> None:
    assert fusing.rotates_by_halves(modeling_llama.apply_rotary_pos_emb)
    assert fusing.rotates_by_halves(modeling_qwen2.apply_rotary_pos_emb)
    assert not fusing.rotates_by_halves(modeling_glm.apply_rotary_pos_emb)


def test_the_module_of_transformers_stays_what_it_is() -> None:
    """Another model of the family is as it was."""
    before = modeling_llama.apply_rotary_pos_emb
    fusing.fuse(made("llama"))
    assert modeling_llama.apply_rotary_pos_emb is before
    assert not forwards(made("llama"))
