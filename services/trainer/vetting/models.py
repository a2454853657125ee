"""A whole model: an index that stays in the folder, and a config no larger than the weights there are."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.core.errors import UnsafeAdapterError
from services.trainer.vetting.configs import INDEX, is_plain
from services.trainer.vetting.weights import Tensor

CONFIG = "config.json"
LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
EMBEDDINGS = re.compile(r"(?:model\.)?embed_tokens\.weight")


def check(folder: Path, configs: Mapping[str, Mapping[str, Any]], tensors: Mapping[str, Tensor]) -> None:
    """Raises UnsafeAdapterError for an index that leads elsewhere, or a config beyond the weights."""
    for name, content in configs.items():
        if name.endswith(INDEX):
            _check_index(folder / name, content.get("weight_map"), tensors)
    if not tensors:
        raise UnsafeAdapterError(f"{folder} has a {CONFIG} but no weights in safetensors")
    _check_size(folder / CONFIG, configs[CONFIG], tensors)


def _check_index(path: Path, weight_map: Any, tensors: Mapping[str, Tensor]) -> None:
    if not isinstance(weight_map, dict):
        raise UnsafeAdapterError(f"{path} has no weight_map")
    for name, file in weight_map.items():
        if not is_plain(file):
            raise UnsafeAdapterError(f"{path} has {name} in {file!r}: expected a file of this folder")
        if name not in tensors or tensors[name].file != file:
            raise UnsafeAdapterError(f"{path} has {name} in {file}, which does not hold it")


def _check_size(path: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """A loader allocates what the config says and fills what it finds no weights for."""
    nested = config.get("text_config")  # of a model that also sees or hears
    text = nested if isinstance(nested, dict) else config
    layers = {int(found[1]) for name in tensors if (found := LAYER.search(name))}
    said = text.get("num_hidden_layers")
    if layers and isinstance(said, int) and said > len(layers):
        raise UnsafeAdapterError(
            f"{path} has num_hidden_layers {said}: there are weights of {len(layers)} layers"
        )
    expected = [text.get("vocab_size"), text.get("hidden_size")]
    for name, tensor in tensors.items():
        if EMBEDDINGS.fullmatch(name) and list(tensor.shape) != expected:
            raise UnsafeAdapterError(
                f"{path} has vocab_size and hidden_size {expected}: {name} in {tensor.file} has the shape"
                f" {list(tensor.shape)}"
            )
