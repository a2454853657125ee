"""What a round trains, adapters or all weights, under one set of verbs: opened, begun, settled, saved."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import torch
from huggingface_hub import split_torch_state_dict_into_shards
from safetensors import safe_open
from safetensors.torch import save_file

from services.core.errors import ConfigurationError, RoundError
from services.trainer.engine.distributed import ALONE, Distribution, causal_lm_of
from services.trainer.model import adapters
from services.trainer.recipes.recipe import Recipe

Kind = Literal["adapter", "model"]
PUBLISHED_DTYPE = torch.bfloat16  # of whole models
FILE_BYTES = 2 * 10**9  # of a whole model, a file
INDEX = "model.safetensors.index.json"
CONFIGS = ("config.json", "tokenizer_config.json", "generation_config.json")


def kind(recipe: Recipe) -> Kind:
    """What the recipe's rounds publish."""
    return "model" if recipe.method == "full" else "adapter"


def for_training(
    base: Any, recipe: Recipe, champion: Path | None, start: Path, distribution: Distribution = ALONE
) -> Any:
    """The base with the champion's or a fresh adapter; for method full the base, all weights trained.

    start: the round's own folder, see `with_adapter`. To be given to `distribution.prepare`.
    Raises ConfigurationError when the champion is of the other kind, or as `with_adapter` does.
    """
    if champion is not None:
        _check_kind(recipe, champion)
    if kind(recipe) == "adapter":
        return adapters.with_adapter(base, recipe, champion, start, distribution)
    return base.requires_grad_(requires_grad=True)


@contextlib.contextmanager
def as_base(trained: Any, *, has_champion: bool) -> Iterator[None]:
    """The untrained base, as long as nothing was trained in this round.

    A fresh adapter changes nothing, PiSSA's least of all with its adapters on; only a champion's goes off.
    """
    if has_champion and hasattr(trained, "disable_adapter"):
        with trained.disable_adapter():
            yield
    else:
        yield


@torch.no_grad()
def begin_from(trained: Any, champion: Path, distribution: Distribution = ALONE) -> None:
    """Put a champion's weights into a model trained in full; an adapter has its champion's already.

    Raises RoundError when the champion lacks a weight.
    """
    if causal_lm_of(trained) is not trained:
        return
    with ExitStack() as opened:
        files = [
            opened.enter_context(safe_open(path, framework="pt"))
            for path in sorted(champion.glob("*.safetensors"))
        ]
        where = {name: file for file in files for name in file.keys()}  # noqa: SIM118  no mapping

        def weight(name: str) -> torch.Tensor:
            if name not in where:
                raise RoundError(f"the champion in {champion} has no weight {name}: it is of another model")
            return where[name].get_tensor(name)

        distribution.fill(trained, weight)


@torch.no_grad()
def settle(trained: Any, distribution: Distribution = ALONE) -> None:
    """Round a model trained in full to what will be published, so that what is judged is what is served."""
    if causal_lm_of(trained) is not trained:
        return
    for parameter in distribution.trainable(trained).values():
        parameter.copy_(parameter.to(PUBLISHED_DTYPE))
    distribution.weights_changed()


def save(
    trained: Any,
    folder: Path,
    weights: Mapping[str, torch.Tensor],
    start: Path | None = None,
    on_file: Callable[[], None] = lambda: None,
) -> None:
    """Write what is published, safetensors and JSON only: an adapter for the plain base, or the model.

    weights: of a model trained in full, from `distribution.whole_weights(trained, PUBLISHED_DTYPE)`;
    `on_file` is called after each of its files.
    """
    if causal_lm_of(trained) is not trained:
        adapters.save(trained, folder, start)
        return
    config = trained.config
    config.dtype = PUBLISHED_DTYPE
    config.save_pretrained(folder)
    if trained.can_generate():
        trained.generation_config.to_json_file(folder / "generation_config.json")
    _save_weights(weights, folder, on_file)


def drop_code(folder: Path) -> None:
    """Take from saved configs the code that the base model's own named (`auto_map`): none of it is loaded.

    transformers carries the names along even where it has the architecture itself.
    """
    for path in folder.glob("*.json"):
        if path.name in CONFIGS and "auto_map" in (config := json.loads(path.read_text(encoding="utf-8"))):
            del config["auto_map"]
            path.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _save_weights(weights: Mapping[str, torch.Tensor], folder: Path, on_file: Callable[[], None]) -> None:
    """As transformers names and indexes them."""
    split = split_torch_state_dict_into_shards(dict(weights), max_shard_size=FILE_BYTES)
    for name, tensors in split.filename_to_tensors.items():
        save_file({one: weights[one] for one in tensors}, folder / name, metadata={"format": "pt"})
        on_file()
    if split.is_sharded:
        index = {"metadata": split.metadata, "weight_map": split.tensor_to_filename}
        (folder / INDEX).write_text(json.dumps(index, indent=2), encoding="utf-8")


def _check_kind(recipe: Recipe, champion: Path) -> None:
    found: Kind = "adapter" if (champion / adapters.CONFIG).is_file() else "model"
    if found != kind(recipe):
        raise ConfigurationError(
            f"the champion of {recipe.name} is of kind {found}, method {recipe.method} trains the kind"
            f" {kind(recipe)}: give the recipe a new name, which begins a track of its own"
        )
