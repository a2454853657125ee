"""An NF4 base, decoded once where there is room for it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from services.trainer.model import load_base, locate
from services.trainer.reinforcement import decoded
from tests.unit.trainer.engine import tiny
from tests.unit.trainer.reinforcement import teams

ROOM = 2**40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("tiny")
    plain = tiny.base()
    plain.config.bos_token_id = plain.config.eos_token_id = None
    plain.save_pretrained(made)
    return made


@pytest.fixture
def quantised(folder: Path) -> Any:
    return load_base(teams.recipe(method="qlora", base_model=str(folder)), locate(str(folder), None, folder))


@torch.no_grad()
def test_it_says_what_it_said(quantised: Any) -> None:
    ids = torch.arange(3, 40)[None]
    expected = quantised(ids).logits
    assert decoded.decode(quantised, ROOM)
    torch.testing.assert_close(quantised(ids).logits, expected)


def test_no_layer_is_left_in_nf4(quantised: Any) -> None:
    decoded.decode(quantised, ROOM)
    layers = quantised.model.layers
    assert all(each.dtype.is_floating_point for each in layers.parameters())
    assert not any(each.requires_grad for layer in layers for each in layer.self_attn.parameters())


def test_a_base_that_would_take_more_than_an_eighth_of_what_is_free_stays(quantised: Any) -> None:
    needed = sum(
        part.weight.quant_state.shape.numel() * part.weight.quant_state.dtype.itemsize
        for part in quantised.modules()
        if hasattr(getattr(part, "weight", None), "quant_state")
    )
    assert not decoded.decode(quantised, 8 * needed - 1)
    assert quantised.model.layers[0].mlp.up_proj.weight.dtype is torch.uint8
    assert decoded.decode(quantised, 8 * needed)


def test_nothing_is_free_on_the_cpu(quantised: Any) -> None:
    assert not decoded.decode(quantised)


def test_a_base_without_nf4_stays_what_it_is() -> None:
    assert not decoded.decode(tiny.base(), ROOM)
