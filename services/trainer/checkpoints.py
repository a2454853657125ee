"""Resumable state of a running round: which checkpoints are complete, which may go."""

import hashlib
import json
import shutil
from pathlib import Path

COMPLETE = "complete.json"  # written last, with the hash of every file


def seal(checkpoint: Path) -> None:
    """Mark a checkpoint as complete: from now on it may be resumed from."""
    files = {str(path.relative_to(checkpoint)): _sha256(path) for path in _files(checkpoint)}
    temporary = checkpoint / f".{COMPLETE}"
    temporary.write_text(json.dumps(files), encoding="utf-8")
    temporary.replace(checkpoint / COMPLETE)


def is_valid(checkpoint: Path) -> bool:
    """Whether it was sealed and every file is as it was then."""
    try:
        files = json.loads((checkpoint / COMPLETE).read_text(encoding="utf-8"))
        return bool(files) and all(_sha256(checkpoint / name) == digest for name, digest in files.items())
    except (OSError, ValueError):
        return False


def newest_valid(folder: Path) -> Path | None:
    """The checkpoint to resume from; damaged ones are removed on the way, so that none is picked up."""
    found = sorted(
        folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]), reverse=True
    )
    for checkpoint in found:
        if is_valid(checkpoint):
            return checkpoint
        shutil.rmtree(checkpoint, ignore_errors=True)
    return None


def _files(checkpoint: Path) -> list[Path]:
    return sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != COMPLETE)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
