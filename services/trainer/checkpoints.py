"""Resumable state of a running round on disk: complete or not there, in a bounded number.

Tensors are safetensors, the rest is JSON; nothing is pickled. A checkpoint is written under another name,
sealed with the hash of every file, and only then given its own.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from services.core.models import Json
from services.core.process import failpoint

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)
COMPLETE = "complete.json"  # written last, with the hash of every file
STATE = "state.json"
UNFINISHED = ".unfinished-"
FILE_BYTES = 512 * 2**20  # of a file of tensors: files are written and hashed side by side
WRITERS = 8  # files at once: with one, six gigabytes would not be saved in the ten seconds a stop may take


@dataclass(frozen=True)
class Checkpoint:
    """What was saved at a step."""

    step: int
    state: Json
    weights: "dict[str, torch.Tensor]"  # on the CPU
    moments: "dict[str, torch.Tensor]"


def path_of(folder: Path, step: int) -> Path:
    return folder / f"checkpoint-{step}"


def unfinished_path(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step is until `finish`; what others put there is sealed with it."""
    return folder / f"{UNFINISHED}{step}"


def write(folder: Path, step: int, tensors: "Mapping[str, Mapping[str, torch.Tensor]]", part: str) -> None:
    """Put groups of tensors, such as weights and moments, into the unfinished checkpoint of a step.

    `part` names the process whose part they are. OSError when the disk is full.
    """
    target = unfinished_path(folder, step)
    target.mkdir(parents=True, exist_ok=True)
    files = {
        target / f"{group}-{part}-{number}.safetensors": chunk
        for group, named in tensors.items()
        for number, chunk in enumerate(_chunks(named))
    }
    with ThreadPoolExecutor(WRITERS) as pool:
        for done in [pool.submit(_write_tensors, path, chunk) for path, chunk in files.items()]:
            done.result()


def finish(folder: Path, step: int, state: Json) -> Path:
    """Make what was written the checkpoint of the step: with its state, sealed, under its name."""
    unfinished, finished = unfinished_path(folder, step), path_of(folder, step)
    unfinished.mkdir(parents=True, exist_ok=True)
    (unfinished / STATE).write_text(json.dumps(state, allow_nan=False), encoding="utf-8")
    if step:  # the first one has nothing to lose
        failpoint("train.before_seal")
    seal(unfinished)
    shutil.rmtree(finished, ignore_errors=True)
    unfinished.rename(finished)
    return finished


def read(checkpoint: Path, part: str) -> Checkpoint:
    """A process's part of it, and the state."""
    from safetensors.torch import load_file

    groups: dict[str, dict[str, torch.Tensor]] = {"weights": {}, "moments": {}}
    for group, named in groups.items():
        for path in sorted(checkpoint.glob(f"{group}-{part}-*.safetensors")):
            named.update(load_file(path))
    state = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
    return Checkpoint(_step(checkpoint), state, groups["weights"], groups["moments"])


def seal(checkpoint: Path) -> None:
    """Mark a checkpoint as complete: from now on it may be resumed from."""
    with ThreadPoolExecutor(WRITERS) as pool:
        paths = _files(checkpoint)
        files = dict(
            zip((str(p.relative_to(checkpoint)) for p in paths), pool.map(_sha256, paths), strict=True)
        )
    temporary = checkpoint / f".{COMPLETE}"
    temporary.write_text(json.dumps(files), encoding="utf-8")
    temporary.replace(checkpoint / COMPLETE)


def is_valid(checkpoint: Path) -> bool:
    """Whether it was sealed and every file is as it was then."""
    try:
        files = json.loads((checkpoint / COMPLETE).read_text(encoding="utf-8"))
        with ThreadPoolExecutor(WRITERS) as pool:
            digests = pool.map(lambda name: _sha256(checkpoint / name), files)
            return bool(files) and list(digests) == list(files.values())
    except (OSError, ValueError, AttributeError):
        return False


def newest_valid(folder: Path) -> Path | None:
    """The checkpoint to resume from; damaged and unfinished ones are removed, so that none is picked up."""
    _remove_unfinished(folder)
    for checkpoint in sorted(folder.glob("checkpoint-*"), key=_step, reverse=True):
        if is_valid(checkpoint):
            return checkpoint
        log.warning("%s is damaged: the one before is taken", checkpoint)
        shutil.rmtree(checkpoint, ignore_errors=True)
    return None


def prune(folder: Path, best_step: int) -> None:
    """Keep the newest, the one before it and the best; remove the others and what was left unfinished."""
    newest_first = sorted(folder.glob("checkpoint-*"), key=_step, reverse=True)
    for checkpoint in newest_first[2:]:
        if _step(checkpoint) != best_step:
            shutil.rmtree(checkpoint, ignore_errors=True)
    _remove_unfinished(folder)


def _remove_unfinished(folder: Path) -> None:
    for unfinished in folder.glob(f"{UNFINISHED}*"):
        shutil.rmtree(unfinished, ignore_errors=True)


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _chunks(named: "Mapping[str, torch.Tensor]") -> "list[dict[str, torch.Tensor]]":
    chunks: list[dict[str, torch.Tensor]] = []
    room = 0
    for name, tensor in named.items():
        size = tensor.numel() * tensor.element_size()
        if not chunks or size > room:
            chunks.append({})
            room = FILE_BYTES
        chunks[-1][name] = tensor
        room -= size
    return chunks


def _write_tensors(path: Path, tensors: "Mapping[str, torch.Tensor]") -> None:
    from safetensors.torch import save_file

    save_file({name: one.detach().cpu().contiguous() for name, one in tensors.items()}, path)


def _files(checkpoint: Path) -> list[Path]:
    return sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != COMPLETE)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
