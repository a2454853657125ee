"""The config.json of a base model, without torch: from disk, the known shapes, or the hub."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.core.errors import ModelNotFoundError
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.shapes import KNOWN

WHEEL = "wheel:"
CONFIG = "config.json"
HUB_TIMEOUT = 5.0  # seconds until the hub counts as not reachable


def read_config(recipe: Recipe, cache: Path, token: str | None = None) -> Mapping[str, Any]:
    """Its fields, from the nearest place that has them. `cache` is CACHE_DIR.

    Raises ModelNotFoundError when there is none.
    """
    base = recipe.base_model
    if base.startswith(("/", "./", "../")):
        return _from(Path(base, CONFIG), base)
    if base.startswith(WHEEL):
        path = cache / "models" / Path(base).stem / CONFIG  # as services/trainer/model/locate.py converts it
    else:
        path = cached_config(base, recipe.revision, hub_cache(cache))
    if path.is_file():
        return _from(path, base)
    if base in KNOWN:
        return KNOWN[base]
    if base.startswith(WHEEL):
        raise ModelNotFoundError(f"base_model {base} is not converted yet: a first round does that")
    return _from(_downloaded(recipe, hub_cache(cache), token), base)


def hub_cache(cache: Path) -> Path:
    """Where rounds keep what the hub sent (services/trainer/daemon/child.py)."""
    if hub := os.environ.get("HF_HUB_CACHE"):
        return Path(hub)
    return Path(os.environ.get("HF_HOME") or cache / "huggingface") / "hub"


def cached_config(base: str, revision: str | None, hub: Path) -> Path:
    """The config's path in the hub's cache; there need be none (hub docs, "Understand caching")."""
    folder = hub / f"models--{base.replace('/', '--')}"
    named = folder / "refs" / (revision or "main")
    commit = named.read_text(encoding="utf-8").strip() if named.is_file() else revision or "main"
    return folder / "snapshots" / commit / CONFIG


def hub_answers() -> bool:
    """Whether the hub can be asked, with any answer at all: its client would try for half a minute."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        with urllib.request.urlopen(constants.ENDPOINT, timeout=HUB_TIMEOUT):  # noqa: S310  the hub's own address
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def _downloaded(recipe: Recipe, hub: Path, token: str | None) -> Path:
    from huggingface_hub import hf_hub_download

    problem = "the hub does not answer"
    if hub_answers():
        try:
            path = hf_hub_download(
                recipe.base_model, CONFIG, revision=recipe.revision, token=token, cache_dir=hub
            )
            return Path(path)
        except Exception as exc:
            problem = (str(exc).strip().splitlines() or [type(exc).__name__])[0]
    raise ModelNotFoundError(
        f"base_model {recipe.base_model}: its {CONFIG} is not in {hub}, its shape is not known, and {problem}"
        " (is the name right, the network there, and HF_TOKEN set if the model is gated?)"
    )


def _from(path: Path, base: str) -> Mapping[str, Any]:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise ModelNotFoundError(f"base_model {base}: {path} cannot be read: {exc}") from exc
    if not isinstance(fields, dict):
        raise ModelNotFoundError(f"base_model {base}: {path} holds no object of fields")
    return fields
