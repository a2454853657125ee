"""ADAPTERS_DIR with a champion of a tiny model, made without training: its B matrices are random."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from services.core.settings import Settings
from services.trainer import model, publish
from services.trainer.recipes.recipe import Recipe

ROUND = "round-0002"
TINY = {
    "name": "tiny",
    "method": "lora",
    "lora_r": 8,
    "max_length": 512,
    "completion_items": 0,
    "held_out_pairs": 1,
}


@dataclass(frozen=True)
class Published:
    settings: Settings
    recipe: Recipe
    folder: Path  # of the champion


def published(home: Path, base: Path, **fields: Any) -> Published:
    """A champion of round 2. fields: of its recipe."""
    recipe = Recipe.model_validate({**TINY, "base_model": str(base), **fields})
    file = home / f"{recipe.name}.yaml"
    changed = recipe.model_dump(mode="json", exclude_defaults=True)
    file.write_text("".join(f"{key}: {_yaml(value)}\n" for key, value in changed.items() if key != "name"))
    settings = Settings(recipe=str(file), adapters_dir=home / "adapters", cache_dir=home / "cache")
    source = model.locate(recipe.base_model, None, home)
    adapted = model.for_training(model.load_base(recipe, source), recipe, None, home / "start")
    generator = torch.Generator().manual_seed(3)
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            weight.data.copy_(0.05 * torch.randn(weight.shape, generator=generator))
    tokenizer = model.load_tokenizer(source)

    def write(folder: Path) -> None:
        model.save(adapted, folder, {}, home / "start")
        tokenizer.save_pretrained(folder)

    manifest = {
        "track": recipe.name, "round": 2, "kind": "adapter", "recipe": recipe.model_dump(mode="json"),
        "base_model": recipe.base_model, "base_revision": None, "parent": None, "snapshot_hash": "",
        "metrics": {"training": {"seconds": 30.0}, "verdict": {"general": None}}, "canary": [],
    }  # fmt: skip
    track = settings.adapters_dir / recipe.name
    publish.publish(track, ROUND, write, manifest)
    publish.point_current(track, ROUND)
    return Published(settings, recipe, (track / ROUND).resolve())


def _yaml(value: Any) -> str:
    return "null" if value is None else str(list(value) if isinstance(value, tuple) else value).lower()
