"""`ratchet export --gguf`: an adapter, merged, as one file for llama.cpp and what is built on it."""

import json
from pathlib import Path

from services.cli.asking import modelprocess
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.errors import ConfigurationError
from services.trainer import subjects

CHILD = "services.trainer.gguf_export"
TYPES = ("f32", "f16", "bf16", "q8_0")


def run(
    environment: Environment, adapter: str, file: Path, *, quantise: str, force: bool, as_json: bool
) -> None:
    """Write the file. Raises ConfigurationError for what cannot be, or with what the process refuses."""
    if quantise not in TYPES:
        raise ConfigurationError(
            f"--quantise {quantise}: expected {', '.join(TYPES)}; llama.cpp's llama-quantize makes others of"
            " an f16 file"
        )
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise ConfigurationError(f"{file}: expected a file in a folder that is there")
    if file.exists() and not force:
        raise ConfigurationError(f"{file} exists: give --force to replace it")
    subject = subjects.resolve(adapter, environment.settings)
    if subject.kind == "team":
        raise subjects.alone(subject, "a model takes")
    sent = {"subject": adapter, "file": str(file.absolute()), "quantise": quantise}
    found = modelprocess.ask(environment, CHILD, sent)
    if as_json:
        print(json.dumps(found))
    else:
        size = f"{found['bytes'] / 2**20:,.0f} MiB, {quantise}"
        print(inert(f"{found['file']}: {size}, in {found['seconds']:.1f} s"))
