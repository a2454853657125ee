"""From an adapter's folder to a model's: file by file, as the base is stored."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file

from services.core.models import Json
from services.trainer.merging import layers
from services.trainer.merging.layers import HEAD, Change
from services.trainer.merging.stored import CONFIG, Opened, Stored
from services.trainer.model.trained import INDEX

COPIED = ("generation_config.json",)
TIED = "tie_word_embeddings"
OnTensor = Callable[[int, int], None]  # done, of how many


@dataclass(frozen=True)
class Merge:
    """A base and what an adapter makes of it."""

    base: Stored
    change: Change

    @property
    def unties(self) -> bool:
        """Whether output layer and embeddings, one weight in the base, become two."""
        return self.change.tied is not None and bool(self.change.touched & {HEAD, self.change.tied})

    @property
    def bytes(self) -> int:
        """What the merged model takes on disk, nearly."""
        if not self._adds_head:
            return self.base.bytes
        with self.base.opened() as opened:
            head = self._head(opened)
        return int(self.base.bytes + head.numel() * head.element_size())

    @property
    def _adds_head(self) -> bool:
        return self.unties and HEAD not in self.base.names

    def write(self, folder: Path, on_tensor: OnTensor = lambda *_: None) -> None:
        """The weights under the base's names of files, its config, and an index where there are several."""
        where: dict[str, str] = {}
        total = len(self.base.names)
        with self.base.opened() as opened:
            for number, (file, names) in enumerate(self.base.files.items(), 1):
                tensors: dict[str, torch.Tensor] = {}
                for name in names:
                    tensors[name] = self.change.applied(name, opened.tensor(name)).contiguous()
                    on_tensor(len(where) + len(tensors), total)
                if self._adds_head and number == len(self.base.files):
                    tensors[HEAD] = self._head(opened)
                save_file(tensors, folder / file, metadata={"format": "pt"})
                where |= dict.fromkeys(tensors, file)
        if len(self.base.files) > 1 or list(self.base.files) != ["model.safetensors"]:
            index = {"metadata": {"total_size": self.bytes}, "weight_map": where}
            (folder / INDEX).write_text(json.dumps(index, indent=2), encoding="utf-8")
        (folder / CONFIG).write_text(json.dumps(self.config, indent=2) + "\n", encoding="utf-8")
        for name in COPIED:
            if (self.base.folder / name).is_file():
                (folder / name).write_bytes((self.base.folder / name).read_bytes())

    @property
    def config(self) -> Json:
        """The base's, without what would run code, and told apart where it is not tied any more."""
        config = {
            key: value for key, value in self.base.config.items() if key not in ("auto_map", "_name_or_path")
        }
        return {**config, TIED: False} if self.unties else config

    def _head(self, opened: Opened) -> torch.Tensor:
        """The output layer that was the embeddings': as they were in the base, with its own adapter."""
        assert self.change.tied is not None
        return self.change.applied(HEAD, opened.tensor(self.change.tied)).contiguous()


def prepared(base: Stored, adapter: Path) -> Merge:
    """Raises ConfigurationError for an adapter that does not fit, or is of a kind that cannot be merged."""
    return Merge(base, layers.read(base.folder, adapter, base.names))
