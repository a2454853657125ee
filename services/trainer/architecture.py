"""What a base model is made of, from its config and tokenizer alone: no weights are fetched.

`python -m services.trainer.architecture` reads a recipe as JSON from standard input and prints what `check`
finds as JSON. It imports transformers, which only processes of the trainer do.
"""

import logging
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import constants
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.pytorch_utils import Conv1D
from transformers.utils import logging as transformers_logging

from services.core.errors import ConfigurationError, ModelNotFoundError
from services.core.models import Json
from services.core.settings import from_environment
from services.trainer import inquiry
from services.trainer.model.locate import WHEEL, locate
from services.trainer.recipes import fit
from services.trainer.recipes.fit import Architecture, Findings, Linear, Words
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.shapes import KNOWN
from services.trainer.samples import fim
from services.trainer.samples.encoder import Encoder

TABLE = "Ratchet's table of known shapes"
HUB_TIMEOUT = 5.0  # seconds until the hub counts as not reachable
LOCAL = ("/", "./", "../", WHEEL)  # how a base_model begins that is no hub id


def check(recipe: Recipe, cache: Path, token: str | None = None) -> Findings:
    """Whether the recipe fits its base model, as far as that can be seen without its weights.

    The config is read where the model will be: a folder, the hub or its cache; failing that from `shapes`.
    Raises nothing for what the recipe says: the findings have `problems`, and what was `not_checked`.
    """
    try:
        source = locate(recipe.base_model, recipe.revision, cache)
    except ModelNotFoundError as exc:
        return fit.findings(recipe, None, None, None, found=[str(exc)])
    is_local = recipe.base_model.startswith(LOCAL)
    offline = not is_local and not hub_answers()
    config_from = "its folder" if is_local else "the hub's cache" if offline else "the hub"
    unread: list[str] = []
    found: list[str] = []

    def attempt(load: Any, what: str) -> Any:
        try:
            return load(
                source.location,
                revision=source.revision,
                token=token,
                local_files_only=offline,
                trust_remote_code=False,
            )
        except (OSError, ValueError, ImportError) as exc:
            if offline:
                unread.append(f"{what}: the hub does not answer, and its cache has none")
            else:
                hint = "" if is_local else " (is the name right, and HF_TOKEN set if it is gated?)"
                found.append(f"{what} of {recipe.base_model}: {_first_line(exc)}{hint}")
            return None

    config = attempt(AutoConfig.from_pretrained, "config")
    if config is None and recipe.base_model in KNOWN:
        config, config_from = known_config(KNOWN[recipe.base_model]), TABLE
        unread = []
    architecture = None
    if config is not None:
        try:
            architecture = read(config)
        except ValueError as exc:
            found.append(f"base_model {recipe.base_model}: {_first_line(exc)}")
    tokenizer = None if found else attempt(AutoTokenizer.from_pretrained, "tokenizer")
    words = None if tokenizer is None else wording(tokenizer, recipe.base_model)
    return fit.findings(
        recipe, architecture, config_from if config is not None else None, words, unread, found=found
    )


def require(recipe: Recipe, cache: Path, token: str | None = None) -> None:
    """Before a round is opened, which would keep its recipe: nothing when it fits and the model is to be had.

    Raises ConfigurationError with every problem there is, ModelNotFoundError without config or tokenizer.
    """
    found = check(recipe, cache, token)
    if found.problems:
        raise ConfigurationError("; ".join(found.problems))
    if found.not_checked or found.config_from == TABLE:
        raise ModelNotFoundError(
            f"base_model {recipe.base_model} is not in the hub's cache, and {constants.ENDPOINT} does not"
            " answer: is the network there?"
        )


def read(config: Any) -> Architecture:
    """The architecture of a transformers config. Raises ValueError when it is no causal language model."""
    with torch.device("meta"):
        built = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    head = built.get_output_embeddings()
    layers = {
        name: part for name, part in built.named_modules() if isinstance(part, torch.nn.Linear | Conv1D)
    }
    text = config.get_text_config()
    return Architecture(
        model_type=config.model_type,
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        positions=getattr(text, "max_position_embeddings", None),
        vocabulary=text.vocab_size,
        parameters=sum(parameter.numel() for parameter in built.parameters()),
        linear=tuple(_linear(name, part) for name, part in layers.items() if part is not head),
        head=next((name for name, part in layers.items() if part is head), None),
        tied=bool(text.tie_word_embeddings),
    )


def wording(tokenizer: Any, base_model: str) -> Words:
    """What of it a recipe may ask for."""
    try:
        fim.tokens(Encoder(tokenizer), base_model)
        has_fim = True
    except (ConfigurationError, ValueError):
        has_fim = False
    return Words(len(tokenizer), bool(tokenizer.chat_template), has_fim)


def known_config(shape: Mapping[str, Any]) -> Any:
    """A transformers config of one of `shapes.KNOWN`."""
    fields = dict(shape)
    return AutoConfig.for_model(fields.pop("model_type"), **fields)


def hub_answers() -> bool:
    """Whether the hub can be asked, with any answer at all."""
    if constants.HF_HUB_OFFLINE:
        return False
    asked = urllib.request.Request(constants.ENDPOINT, method="HEAD")  # noqa: S310  the hub's own address
    try:
        with urllib.request.urlopen(asked, timeout=HUB_TIMEOUT):  # noqa: S310
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def _linear(name: str, part: Any) -> Linear:
    inputs, outputs = part.weight.shape if isinstance(part, Conv1D) else reversed(part.weight.shape)
    return Linear(name, inputs, outputs)


def _first_line(exc: Exception) -> str:
    return str(exc).strip().splitlines()[0]


def work(asked: Json) -> Json:
    """What `check` finds of a recipe, as JSON."""
    logging.disable(logging.WARNING)
    transformers_logging.disable_progress_bar()
    settings = from_environment()
    return check(Recipe.model_validate(asked), settings.cache_dir, settings.hub_token).as_json()


if __name__ == "__main__":
    sys.exit(inquiry.answer(work))
