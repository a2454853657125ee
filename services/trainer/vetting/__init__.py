"""Looks at the folder of an adapter, model or team before anything loads it, and refuses what could do harm.

Only names, sizes, small JSON files, templates and the headers of safetensors are read, nothing is imported or
unpickled: milliseconds, whatever the weights' size, and without torch.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from services.trainer.vetting import adapters, configs, models, teams, templates
from services.trainer.vetting.configs import parsed
from services.trainer.vetting.files import listing
from services.trainer.vetting.weights import headers

__all__ = ["listing", "parsed", "vet"]


def vet(folder: Path, base_model: str | None = None, base_config: Mapping[str, Any] | None = None) -> None:
    """Return if PEFT's or transformers' loaders may be given this folder; otherwise say why not.

    base_model: what the adapter is to go onto, as a recipe names it; its config may then name no other.
    base_config: that model's config.json, which the adapter's shapes must fit.
    Raises UnsafeAdapterError that names the file and the reason.
    """
    folder = folder.resolve()
    paths = listing(folder)
    if teams.is_team(folder):
        for part in teams.parts(folder, paths):
            _vet(part, [path for path in paths if path.parent == part], base_model, base_config)
        paths = [path for path in paths if path.parent == folder and path.name != teams.PROFILES]
    _vet(folder, paths, base_model, base_config)


def _vet(
    folder: Path, paths: Sequence[Path], base_model: str | None, base_config: Mapping[str, Any] | None
) -> None:
    found = configs.read(folder, paths)
    templates.check(folder, paths, found)
    tensors = headers(folder, paths)
    if adapters.CONFIG in found:
        adapters.check(folder, found[adapters.CONFIG], tensors, base_model, base_config)
    elif models.CONFIG in found:
        models.check(folder, found, tensors)
