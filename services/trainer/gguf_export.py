"""A merged model as a GGUF file, by llama.cpp's own converter, as the package auto-round carries it.

`python -m services.trainer.gguf_export` reads `subject`, `file` and `quantise` as JSON on standard input. The
converter comes with `requirements/gguf.in`; LLAMA_CPP_ROOT names a checkout of llama.cpp to be used instead.
docs/decisions/0024-use.md says why this one.
"""

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import torch

from services.core.errors import ConfigurationError, PublishError
from services.core.models import Json
from services.core.settings import Settings, from_environment
from services.trainer import inquiry, subjects
from services.trainer.answering import loading
from services.trainer.merging import merge
from services.trainer.merging.stored import stored
from services.trainer.subjects import Subject

TYPES = ("f32", "f16", "bf16", "q8_0")  # that the converter writes; llama-quantize makes others of these
INSTALL = "pip install -r requirements/gguf.in"
BYTES_A_WEIGHT = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32}  # of 32 in q8_0: 32 bytes, a scale


def main() -> int:
    """Exit status 1 with a line on standard error when it cannot be done."""
    settings = from_environment()
    return inquiry.answer(lambda sent: exported(sent, settings))


def exported(sent: Json, settings: Settings) -> Json:
    """Write the file, whole or not at all.

    Raises ConfigurationError without the converter or for a model it does not know, PublishError when the
    file cannot be written.
    """
    began = time.monotonic()
    target, kind = Path(sent["file"]), sent["quantise"]
    find_class = converter()
    subject = subjects.resolve(sent["subject"], settings)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with whole_model(subject, settings, target.parent) as folder:
            check_room(folder, target, kind)
            convert(find_class, folder, unfinished, kind)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except OSError as exc:
        raise PublishError(f"{target} cannot be written: {exc}") from exc
    finally:
        unfinished.unlink(missing_ok=True)
    return {
        "subject": subject.name,
        "file": str(target),
        "quantise": kind,
        "bytes": target.stat().st_size,
        "seconds": round(time.monotonic() - began, 3),
    }


@contextmanager
def whole_model(subject: Subject, settings: Settings, beside: Path) -> Iterator[Path]:
    """A folder with the whole model: its own, or merged into a temporary one beside the target."""
    if subject.kind == "team":
        raise subjects.alone(subject, "a model takes")
    if subject.kind == "model" and subject.folder is not None:
        yield subject.folder
        return
    base = stored(loading.source_of(subject, settings), settings.hub_token)
    if subject.folder is None:
        yield base.folder
        return
    with TemporaryDirectory(prefix=".ratchet-gguf-", dir=beside) as temporary:
        folder = Path(temporary)
        merge.prepared(base, subject.folder).write(folder)
        loading.load_tokenizer(subject, settings).save_pretrained(folder)
        yield folder


def converter() -> Any:
    """A function from a model's folder to llama.cpp's class for it. Raises ConfigurationError without one."""
    os.environ.setdefault("NO_LOCAL_GGUF", "1")
    os.environ["AUTO_ROUND_GGUF_AUTO_UPDATE"] = "0"  # it would fetch newer code over the network
    try:
        from auto_round.export.export_to_gguf.llama_cpp_conversion import get_conversion
    except ImportError as exc:
        raise ConfigurationError(
            f"--gguf needs llama.cpp's converter, which is not installed ({exc}): {INSTALL}. Or merge with"
            " `ratchet merge ADAPTER FOLDER` and run `python llama.cpp/convert_hf_to_gguf.py FOLDER"
            " --outfile FILE.gguf --outtype q8_0` from a checkout of llama.cpp"
        ) from exc
    return get_conversion


def convert(find_class: Any, folder: Path, target: Path, kind: str) -> None:
    """As llama.cpp's convert_hf_to_gguf.py does. Raises ConfigurationError for a model it does not know."""
    import gguf

    types = {
        "f32": gguf.LlamaFileType.ALL_F32,
        "f16": gguf.LlamaFileType.MOSTLY_F16,
        "bf16": gguf.LlamaFileType.MOSTLY_BF16,
        "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    }
    logging.getLogger("hf-to-gguf").setLevel(logging.WARNING)
    try:
        found = find_class(folder)
        config = found.ModelBase.load_hparams(folder, False)
        made = found.get_model_class(found.get_model_architecture(config, found.ModelType.TEXT))
        with torch.inference_mode():
            made(folder, types[kind], target).write()
    except (NotImplementedError, ValueError, KeyError, ImportError) as exc:
        raise ConfigurationError(
            f"llama.cpp's converter refuses this model: {exc}. A newer checkout may know it: name it in"
            " LLAMA_CPP_ROOT"
        ) from exc


def check_room(folder: Path, target: Path, kind: str) -> None:
    """Raises PublishError when the disk has too little room."""
    weights = sum(path.stat().st_size for path in folder.glob("*.safetensors")) / 2
    need, free = int(weights * BYTES_A_WEIGHT[kind]), psutil.disk_usage(str(target.parent)).free
    if free < need:
        raise PublishError(
            f"{target} needs about {need / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are free: make room"
        )


if __name__ == "__main__":
    sys.exit(main())
