"""Passages of what is forgotten, kept until it is known what the next champion gives up of them.

The only copy of the texts that outlives their erasing: a file below RATCHET_HOME that nobody but its owner
reads, gone with the end of the forgetting.
"""

import json
import os
from pathlib import Path

from services.core.db import Transaction
from services.core.settings import Settings
from services.trainer.forgetting.steps import Forgetting

MOST_CHARACTERS = 12_000  # of a text, its beginning

Passages = dict[str, list[str]]  # track → texts


def path_of(settings: Settings, forgetting: Forgetting) -> Path:
    return settings.ratchet_home / "forgetting" / f"{forgetting.forgetting_id}.json"


def sample(tx: Transaction, forgetting: Forgetting, tracks: list[str], most: int) -> Passages:
    """Texts that marked adapters trained on, at most so many a track; always the same ones."""
    found = {}
    for track in tracks:
        rows = tx.all("forget_sample", forgetting=forgetting.forgetting_id, track=track, most=most)
        found[track] = [row.text[:MOST_CHARACTERS] for row in rows]
    return {track: texts for track, texts in found.items() if texts}


def keep(path: Path, passages: Passages) -> None:
    """Write the file, readable by its owner alone from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(passages, file)
    unfinished.replace(path)


def kept(path: Path) -> Passages:
    """None of any track when the file is not there, or not whole."""
    try:
        read: Passages = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read


def drop(path: Path) -> None:
    """Overwritten first: on a disk that writes in place nothing of it is left."""
    for each in (path, path.with_suffix(".unfinished")):
        try:
            with each.open("r+b") as file:
                file.write(b"\0" * each.stat().st_size)
                file.flush()
                os.fsync(file.fileno())
            each.unlink()
        except FileNotFoundError:
            continue
