"""One base model in memory with any number of adapters; each answer is written by one of them alone."""

from pathlib import Path
from typing import Any

import torch
from fastapi import HTTPException
from peft import PeftConfig, PeftModel
from transformers.cli.serving.model_manager import ModelManager
from transformers.cli.serving.utils import BaseGenerateManager, GenerateManager, GenerationState

from services.core.errors import ConfigurationError

BASE = "base"  # as the front calls it


class OneThread(GenerationState):
    """All of torch in one thread, in the order in which it was asked for: loading too.

    transformers has a thread a model; ours share one base, whose active adapter is a state of the whole.
    """

    def __init__(self) -> None:
        super().__init__()
        self.thread = GenerateManager()

    def get_manager(self, model_id: str, use_cb: bool = False) -> BaseGenerateManager:  # noqa: ARG002
        return self.thread


class Models:
    """The base and its adapters. `load`, `unload` and `generate` run in the thread of `OneThread`."""

    def __init__(self, base: Any, root: str) -> None:
        """base: a causal LM in evaluation mode; root: where it is from."""
        self.base, self.root = base, root
        self.folders: dict[str, Path] = {}  # by the name that is asked for
        self._inner: dict[str, str] = {}  # PEFT's names: without the dots that a track's may have
        self._count = 0
        self._adapted: Any = None  # None: without any adapter the base is bare

    def load(self, name: str, folder: Path) -> None:
        """Raises PublishError for a folder that must not be loaded, ConfigurationError for one that does
        not fit; the adapters before stay.
        """
        from services.trainer import vetting

        vetting.vet(folder)
        self._count += 1
        inner = f"adapter{self._count}"
        try:
            if self._adapted is None:  # the layers first: they can be taken away again when the weights fail
                self._adapted = PeftModel(self.base, PeftConfig.from_pretrained(str(folder)), inner)
            found = self._adapted.load_adapter(str(folder), inner, torch_device=str(self.base.device))
            _check(found)
        except (RuntimeError, ValueError, KeyError, TypeError, OSError) as exc:
            self._drop(inner)
            if isinstance(exc, torch.OutOfMemoryError):
                raise
            raise ConfigurationError(f"the adapter in {folder} does not fit {self.root}: {exc}") from exc
        self._adapted.eval()
        self._inner[name], self.folders[name] = inner, folder

    def unload(self, name: str) -> None:
        """Raises KeyError for a name that is not loaded."""
        del self.folders[name]
        self._drop(self._inner.pop(name))

    def generate(self, name: str, **inputs: Any) -> Any:
        """What the base, or the base with this adapter, writes. Raises KeyError for a name not loaded."""
        if name != BASE:
            self._adapted.set_adapter(self._inner[name], inference_mode=True)
            return self.base.generate(**inputs)
        if self._adapted is None:
            return self.base.generate(**inputs)
        with self._adapted.disable_adapter():
            return self.base.generate(**inputs)

    def _drop(self, inner: str) -> None:
        """PEFT's last adapter goes with PEFT's layers: nothing is left of it in the base."""
        if self._adapted is None or inner not in self._adapted.peft_config:
            return
        if len(self._adapted.peft_config) == 1:
            self._adapted.unload()
            self._adapted = None
        else:
            self._adapted.delete_adapter(inner)


def _check(found: Any) -> None:
    """Raises ValueError for weights that belong nowhere, or for layers that got none."""
    wrong = [*found.unexpected_keys, *(key for key in found.missing_keys if "lora_" in key)]
    if wrong:
        raise ValueError(f"{len(wrong)} of its weights are missing or of no layer here, as {wrong[0]}")


class View:
    """The base as the handlers of transformers want a model, writing with one adapter."""

    def __init__(self, models: Models, name: str) -> None:
        self._models, self._name = models, name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._models.base, attribute)

    def generate(self, **inputs: Any) -> Any:
        return self._models.generate(self._name, **inputs)


class Known(ModelManager):
    """What `transformers serve` can be asked: our models, loaded already, and no others."""

    def __init__(self, models: Models, tokenizer: Any) -> None:
        super().__init__(device=str(models.base.device.type), model_timeout=-1)
        self._models, self._tokenizer = models, tokenizer

    @staticmethod
    def process_model_name(model_id: str) -> str:
        return model_id

    def load_model_and_processor(self, model_id_and_revision: str, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Raises HTTPException for a name that is not loaded."""
        if model_id_and_revision != BASE and model_id_and_revision not in self._models.folders:
            raise HTTPException(404, f"The model `{model_id_and_revision}` does not exist.")
        return View(self._models, model_id_and_revision), self._tokenizer

    def shutdown(self) -> None:
        """Nothing to unload one by one: the process ends."""
