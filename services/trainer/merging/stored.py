"""A base model's weights where they lie, in safetensors: what there is, in which file, read one at a time."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from safetensors import safe_open

from services.core.errors import ConfigurationError
from services.core.models import Json
from services.trainer.model import Source
from services.trainer.model.locate import explained

CONFIG = "config.json"
PATTERNS = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model"]


@dataclass(frozen=True)
class Stored:
    """A folder of safetensors, its files in order with the tensors each holds."""

    folder: Path
    files: dict[str, tuple[str, ...]]  # name of a file → names of its tensors

    @property
    def names(self) -> set[str]:
        return {name for names in self.files.values() for name in names}

    @property
    def bytes(self) -> int:
        return sum((self.folder / file).stat().st_size for file in self.files)

    @property
    def largest_file_bytes(self) -> int:
        return max((self.folder / file).stat().st_size for file in self.files)

    @property
    def config(self) -> Json:
        return dict(json.loads((self.folder / CONFIG).read_text(encoding="utf-8")))

    @contextmanager
    def opened(self) -> Iterator["Opened"]:
        with ExitStack() as stack:
            files = {
                file: stack.enter_context(safe_open(self.folder / file, framework="pt"))
                for file in self.files
            }
            yield Opened({name: files[file] for file, names in self.files.items() for name in names})


@dataclass(frozen=True)
class Opened:
    """The same, to be read: nothing is in memory before it is asked for."""

    where: dict[str, Any]

    def tensor(self, name: str) -> Any:
        return self.where[name].get_tensor(name)


def stored(source: Source, token: str | None = None) -> Stored:
    """The base's files: of a folder, or of the hub's cache, fetched where they are missing.

    Raises ModelNotFoundError when it is not to be had, ConfigurationError when it is stored quantised or
    without safetensors.
    """
    folder = Path(source.location)
    if not folder.is_dir():
        with explained(source):
            folder = Path(
                snapshot_download(
                    source.location, revision=source.revision, token=token, allow_patterns=PATTERNS
                )
            )
    paths = sorted(folder.glob("*.safetensors"))
    files: dict[str, tuple[str, ...]] = {}
    for path in paths:
        with safe_open(path, framework="pt") as opened:
            files[path.name] = tuple(sorted(opened.keys()))
    found = Stored(folder, files)
    if not files:
        raise ConfigurationError(f"base_model {source.location} has no safetensors: nothing to merge onto")
    if "quantization_config" in found.config:
        raise ConfigurationError(
            f"base_model {source.location} is stored quantised: merging needs its full weights, name the"
            " model that it was made from in the recipe's base_model"
        )
    return found
