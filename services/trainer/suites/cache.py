"""Results that need not be measured again: by the weights that made them and the item they are of.

`CACHE_DIR/results/WEIGHTS.jsonl`, one score a line. Several processes may append to a file; a line that is
torn, by a crash, counts as missing.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from services.trainer.model.locate import Source
from services.trainer.suites.suite import Score

FOLDER = "results"
ADAPTER = "adapter_config.json"
READ_BYTES = 2**24  # of a tensor at once


class Results:
    """The scores of one model, read once and added to."""

    def __init__(self, cache_dir: Path, weights: str) -> None:
        """weights: as `weights_of` gives it."""
        self._path = cache_dir / FOLDER / f"{weights}.jsonl"
        self._scores: dict[str, list[Score]] = {}
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            data = b""
        self._is_torn = bool(data) and not data.endswith(b"\n")
        for line in data.split(b"\n"):
            if (score := _read(line)) is not None:
                self._remember(score)

    def of(self, item: str) -> list[Score]:
        """All scores of the item, one a metric; none when it was not measured."""
        return list(self._scores.get(item, ()))

    def add(self, scores: Iterable[Score]) -> None:
        """Keep them, for other processes too."""
        new = list(scores)
        lines = [json.dumps(asdict(score), ensure_ascii=False) for score in new]
        data = "".join(f"{line}\n" for line in lines).encode(errors="replace")
        if not data:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, b"\n" * self._is_torn + data)  # one call: lines of two processes do not mix
        finally:
            os.close(file)
        self._is_torn = False
        for score in new:
            self._remember(score)

    def _remember(self, score: Score) -> None:
        of_item = self._scores.setdefault(score.item, [])
        of_item[:] = [each for each in of_item if each.metric != score.metric] + [score]


def base_identity(source: Source, *, numbers: str, commit: str | None = None) -> str:
    """A name for a base model's weights as they are computed with.

    numbers: how they are in memory (`nf4`, `bfloat16`, …). commit: of the hub, as it was loaded. A folder
    counts as another model once a file of it has another size or time.
    """
    folder = Path(source.location)
    if not folder.is_dir():
        return f"{source.location}@{commit or source.revision} {numbers}"
    files = sorted(path for path in folder.iterdir() if path.is_file())
    stats = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return f"{folder.resolve()} {hashlib.sha256(json.dumps(stats).encode()).hexdigest()} {numbers}"


def weights_of(base: str, trained: Path | Mapping[str, Any] | None = None) -> str:
    """SHA-256 of a base's identity and of what was trained: a published folder, tensors by name, or nothing.

    A folder of an adapter and the same adapter in memory have two identities.
    """
    digest = hashlib.sha256(base.encode())
    if isinstance(trained, Path):
        for path in sorted(trained.glob("*.safetensors")) + sorted(trained.glob(ADAPTER)):
            digest.update(path.name.encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    elif trained is not None:
        for name in sorted(trained):
            tensor = trained[name].detach().contiguous()
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            for part in tensor.reshape(-1).view(torch.uint8).split(READ_BYTES):
                digest.update(part.cpu().numpy().tobytes())
    return digest.hexdigest()


def version_of(keys: Sequence[str]) -> str:
    """SHA-256 over the keys of a suite's items, in whatever order they are."""
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()


def _read(line: bytes) -> Score | None:
    try:
        return Score(**json.loads(line))
    except (ValueError, TypeError):
        return None
