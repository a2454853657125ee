"""Which way of sharing a step a recipe gets."""

from pathlib import Path
from typing import Any

import pytest
import torch

from services.core.errors import ConfigurationError
from services.trainer import checkpoints
from services.trainer.engine import sharing as module
from services.trainer.engine.distributed import ALONE, Distribution
from services.trainer.engine.saving import Saving
from services.trainer.engine.sharing import sharing
from services.trainer.engine.state import TrainingState
from services.trainer.recipes.recipe import Recipe


class Joined(Distribution):
    """So many processes, as if."""

    def __init__(self, world: int, device: str) -> None:
        self.world = world
        self._device = torch.device(device)

    @property
    def device(self) -> torch.device:
        return self._device


def recipe(**fields: Any) -> Recipe:
    """A recipe that need not make sense."""
    return Recipe.model_construct(**{**Recipe(name="t", base_model="b").model_dump(), **fields})


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a split model was asked for; empty: none was."""
    asked: dict[str, Any] = {}

    def take(**options: Any) -> Distribution:
        asked.update(options)
        return ALONE

    monkeypatch.setattr(module, "_sharded", take)
    return asked


@pytest.mark.parametrize("world", [1, 2])
@pytest.mark.parametrize("method", ["lora", "qlora"])
@pytest.mark.parametrize("wanted", ["auto", "ddp"])
def test_adapters_are_replicated(world: int, method: str, wanted: str, split: dict[str, Any]) -> None:
    """Every process has the model."""
    joined = Joined(world, "cuda")
    assert sharing(recipe(method=method, distributed=wanted), joined, 1.0) is joined
    assert not split


def test_zero2_with_adapters_is_ddp(split: dict[str, Any]) -> None:
    """ZeRO-2 keeps weights whole, and adapters have hardly an optimizer state to split."""
    joined = Joined(2, "cuda")
    assert sharing(recipe(method="lora", distributed="zero2"), joined, 1.0) is joined
    assert not split


@pytest.mark.parametrize("wanted", ["fsdp2", "zero3"])
def test_a_base_in_bf16_is_split_over_several_processes(wanted: str, split: dict[str, Any]) -> None:
    """One alone has nobody to split it with."""
    sharing(recipe(method="lora", distributed=wanted), Joined(1, "cuda"), 1.0)
    assert not split
    sharing(recipe(method="lora", distributed=wanted), Joined(2, "cuda"), 1.0)
    assert split == {"keep_gathered": False, "timeout": 1.0}


@pytest.mark.parametrize("wanted", ["fsdp2", "zero2", "zero3"])
def test_a_base_in_nf4_is_not_split(wanted: str) -> None:
    """Said before anything is loaded."""
    with pytest.raises(ConfigurationError, match="NF4"):
        sharing(recipe(method="qlora", distributed=wanted), Joined(2, "cuda"), 1.0)


@pytest.mark.parametrize(
    ("wanted", "keep"), [("auto", False), ("fsdp2", False), ("zero3", False), ("zero2", True)]
)
@pytest.mark.parametrize(("world", "device"), [(1, "cuda"), (2, "cuda"), (2, "cpu")])
def test_all_weights_are_split(
    wanted: str, keep: bool, world: int, device: str, split: dict[str, Any]
) -> None:
    """On a GPU also over one process: float32 masters, bfloat16 copies."""
    sharing(recipe(method="full", distributed=wanted), Joined(world, device), 1.0)
    assert split == {"keep_gathered": keep, "timeout": 1.0}


def test_all_weights_on_one_cpu_are_trained_plainly(split: dict[str, Any]) -> None:
    """Nothing to gain there."""
    assert sharing(recipe(method="full"), Joined(1, "cpu"), 1.0) is ALONE
    assert not split


def test_all_weights_are_not_replicated() -> None:
    """Four times their size in each process is what splitting is for."""
    with pytest.raises(ConfigurationError, match="ddp"):
        sharing(recipe(method="full", distributed="ddp"), Joined(2, "cuda"), 1.0)


class OneOfOne(Distribution):
    """A split model over one process."""

    splits = True


def test_a_checkpoint_of_other_processes_parts_is_not_resumed(tmp_path: Path) -> None:
    """Parts of two cannot be put together by one: the training begins anew."""
    parameters = {"weight": torch.nn.Parameter(torch.ones(2, 2))}
    optimizer = torch.optim.AdamW(parameters.values())
    checkpoints.write(tmp_path, 3, {"weights": parameters}, "0-of-2")
    checkpoints.finish(tmp_path, 3, {"training": TrainingState(3).as_json(), "optimizer": {}})
    assert Saving(tmp_path, parameters, optimizer, OneOfOne()).restore_newest() is None
