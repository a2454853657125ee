"""The model and the tokenizer of who is asked."""

from pathlib import Path
from typing import Any

import torch
from peft import PeftModel

from services.core.errors import ConfigurationError
from services.core.settings import Settings
from services.trainer import model, subjects
from services.trainer.subjects import Subject

TOKENIZER = "tokenizer_config.json"


def load(subject: Subject | Path | str, settings: Settings, *, unquantised: bool = False) -> tuple[Any, Any]:
    """The model, in evaluation mode, and its tokenizer; the base as in training unless `unquantised`.

    Of a team the role that answers, alone; `reinforcement.asking` has all of it at work.

    subject: resolved, or a name or folder as `subjects.resolve` takes it. Raises as that does,
    ModelNotFoundError for a base model that is not to be had, ConfigurationError for an adapter of another
    architecture.
    """
    found = subject if isinstance(subject, Subject) else subjects.resolve(str(subject), settings)
    base, tokenizer = load_base(found, settings, unquantised=unquantised)
    return attach(base, found), tokenizer


def load_base(subject: Subject, settings: Settings, *, unquantised: bool = False) -> tuple[Any, Any]:
    """The model that the subject's adapter goes onto, or itself where it is whole, and the tokenizer."""
    recipe = subject.recipe
    if subject.kind == "model":
        recipe = recipe.model_copy(update={"method": "full"})
    elif unquantised:
        recipe = recipe.model_copy(update={"method": "lora"})
    loaded = model.load_base(recipe, source_of(subject, settings), settings.hub_token).eval()
    return loaded, load_tokenizer(subject, settings)


def load_tokenizer(subject: Subject, settings: Settings) -> Any:
    """The one that was published with it; a stranger's adapter goes with its base model's."""
    has_own = subject.release is not None and (subject.release / TOKENIZER).is_file()
    if has_own and (subject.manifest is not None or subject.kind == "model"):
        return model.load_tokenizer(model.Source(str(subject.release), None), settings.hub_token)
    return model.load_tokenizer(source_of(subject, settings), settings.hub_token)


def source_of(subject: Subject, settings: Settings) -> model.Source:
    """Where the weights are that no adapter is needed for."""
    if subject.kind == "model":
        return model.Source(str(subject.folder), None)
    return model.locate(subject.recipe.base_model, subject.revision, settings.cache_dir)


def attach(base: Any, subject: Subject) -> Any:
    """The base with the subject's adapter, frozen; the base itself where there is none to attach."""
    subject = alone(subject)
    if subject.kind != "adapter":
        return base
    try:
        return PeftModel.from_pretrained(base, str(subject.folder), torch_device=str(base.device)).eval()
    except (RuntimeError, ValueError, KeyError, TypeError) as exc:
        if isinstance(exc, torch.OutOfMemoryError):
            raise
        named = subjects.described_base(subject)
        of = f" (it says it is for {named})" if named else ""
        raise ConfigurationError(
            f"the adapter in {subject.folder} does not fit base_model {subject.recipe.base_model}{of}: {exc}"
        ) from exc


def alone(subject: Subject) -> Subject:
    """What answers by itself: of a team the last role's adapter."""
    if subject.kind != "team":
        return subject
    return subjects.of_role(subject, subject.profiles[-1].role)
