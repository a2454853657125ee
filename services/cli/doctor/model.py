"""The recipe's base model: is it here, and if not, may it be fetched?"""

import http.client
import importlib.util
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from services.cli.doctor.finding import Finding, error, ok, skipped, warning
from services.cli.doctor.machine import GB, existing
from services.cli.environment import Environment
from services.core.errors import ConfigurationError
from services.trainer.plan import Shape
from services.trainer.plan_config import CONFIG, WHEEL, cached_config, hub_cache
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.shapes import KNOWN

HUB = "https://huggingface.co"
HUB_SECONDS = 3.0  # patience
WEIGHTS = "*.safetensors"
GATED = (401, 403)
BYTES_A_PARAMETER = 2  # bfloat16, as the hub's models are stored


def base_model(environment: Environment) -> Iterable[Finding]:
    settings = environment.settings
    try:
        recipe = recipe_files.load(settings.recipe, settings.recipe_overrides)
    except ConfigurationError:  # the check of the recipe says so
        return [skipped("model", "no recipe, so no base model")]
    base = recipe.base_model
    if base.startswith(WHEEL):
        return [in_wheel(base)]
    if base.startswith(("/", "./", "../")):
        return [in_folder(Path(base))]
    if (snapshot := fetched(base, recipe.revision, hub_cache(settings.cache_dir))) is not None:
        return [ok("model", f"{base} is here: {snapshot}")]
    if environment.variables.get("HF_HUB_OFFLINE", "") in ("1", "true", "yes", "on"):
        cure = f"fetch it into {hub_cache(settings.cache_dir)}, or unset HF_HUB_OFFLINE"
        return [error("model", f"{base} is not here, and HF_HUB_OFFLINE is set", cure)]
    endpoint = environment.variables.get("HF_ENDPOINT") or HUB
    return [at_hub(recipe, endpoint, settings.hub_token), *room(base, settings.cache_dir)]


def in_wheel(base: str) -> Finding:
    package = base.removeprefix(WHEEL).partition("/")[0]
    if importlib.util.find_spec(package) is None:
        return error("model", f"{base}: the package {package} is not installed", "`make setup` installs it")
    return ok("model", f"{base} is installed with Ratchet")


def in_folder(folder: Path) -> Finding:
    if not (folder / CONFIG).is_file():
        cure = "base_model in the recipe must name a folder that transformers can load"
        return error("model", f"{folder} holds no {CONFIG}", cure)
    if not any(folder.glob(WEIGHTS)):
        return error("model", f"{folder} holds no {WEIGHTS}", "convert its weights to safetensors")
    return ok("model", f"{folder} holds a model")


def fetched(base: str, revision: str | None, hub: Path) -> Path | None:
    """The snapshot in the hub's cache with its weights; None when there is none, or only part of it."""
    snapshot = cached_config(base, revision, hub).parent
    whole = (snapshot / CONFIG).is_file() and any(snapshot.glob(WEIGHTS))
    return snapshot if whole and not any(snapshot.parents[1].glob("blobs/*.incomplete")) else None


def room(base: str, cache: Path) -> Iterable[Finding]:
    """Whether a model of known shape, at two bytes a parameter, would fit where it is fetched to."""
    there = existing(cache)
    if base not in KNOWN or there is None:
        return []
    needed = BYTES_A_PARAMETER * Shape.from_config(KNOWN[base]).parameters
    free = shutil.disk_usage(there).free
    if free > needed:
        return []
    said = f"{base} takes about {needed / GB:.0f} GB, and {free / GB:.1f} GB are free in CACHE_DIR={cache}"
    return [error("model", said, "make room there, or set CACHE_DIR to a folder on a larger disk")]


def at_hub(recipe: Recipe, endpoint: str, token: str | None) -> Finding:
    """Whether the hub gives its config, which it does to whoever may have the weights."""
    base = recipe.base_model
    path = f"/{base}/resolve/{recipe.revision or 'main'}/{CONFIG}"
    try:
        status = head(endpoint, path, token)
    except OSError as exc:
        why = exc.strerror or str(exc)
        return error(
            "model",
            f"{base} is not here, and {endpoint} cannot be reached: {why}",
            "let this machine reach the hub, set HF_ENDPOINT to a mirror, or RECIPE=demo, which needs none",
        )
    if status < 400:
        return ok("model", f"{base} is not here yet: the first round fetches it")
    if status in GATED:
        with_token = "with this HF_TOKEN" if token else "without HF_TOKEN"
        return error(
            "model",
            f"the hub refuses {base} {with_token} (HTTP {status}): it is gated, private, or misspelt",
            f"accept its terms at {endpoint}/{base} and set HF_TOKEN to a token of that account",
        )
    if status == 404:
        return error("model", f"the hub has no {base} at {recipe.revision or 'main'}", "is it misspelt?")
    return warning("model", f"the hub answers {status} for {base}", "try again later")


def head(endpoint: str, path: str, token: str | None) -> int:
    """The status of a HEAD request, redirections not followed. Raises OSError when there is no answer."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(endpoint.rstrip("/") + path, headers=headers, method="HEAD")  # noqa: S310 - the hub's own address
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=HUB_SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        return exc.code
    except urllib.error.URLError as exc:
        raise OSError(str(exc.reason)) from exc
    except (http.client.HTTPException, ValueError) as exc:
        raise OSError(str(exc)) from exc


class _Stay(urllib.request.HTTPRedirectHandler):
    """Goes nowhere else: the token is for this host."""

    def redirect_request(self, *_arguments: object) -> None:
        return None
