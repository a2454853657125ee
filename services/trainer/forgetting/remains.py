"""Where texts may lie beside the ledger: files that Ratchet owns are removed, the others are named."""

import json
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from services.core.models import Json
from services.core.settings import Settings
from services.trainer.forgetting.words import OpenRound

RESULTS = "results"  # answers of suites: services/trainer/suites/cache.py
TABLE = b"predictions/"  # how TensorBoard names texts: services/trainer/tracking.py
NOT_OURS = (
    "the ingest folder itself: the files lie there, are not read any more, and are yours to delete",
    "PostgreSQL's dead rows (until VACUUM), write-ahead log, replicas and backups",
    "files that `ratchet export` wrote, answers and comparisons that were saved, adapters copied elsewhere",
    "W&B: tables of runs that were sent there, and its own staging folder",
)


def remove(settings: Settings, rounds: Sequence[OpenRound], content_ids: Collection[int]) -> list[str]:
    """Remove what may quote the texts or was being trained on them; what was removed, in words.

    rounds: those that were closed for it. Safe to repeat.
    """
    gone = []
    for each in rounds:
        folder = settings.checkpoints_dir / each.track / each.name
        if folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(f"checkpoints of {each.track}/{each.name}")
    results = settings.cache_dir / RESULTS
    if results.is_dir():
        shutil.rmtree(results, ignore_errors=True)
        gone.append("cached answers of suites, which are measured again when they are needed")
    for events in _quoting_events(settings.logs_dir / "tensorboard"):
        events.unlink(missing_ok=True)
        gone.append(f"TensorBoard's {events.parent.name}, which quotes code")
    for table in _quoting_tables(settings.logs_dir / "wandb", content_ids):
        table.unlink(missing_ok=True)
        gone.append(f"W&B's {table.name}")
    return gone


def remove_adapters(settings: Settings, adapters: Sequence[Json]) -> list[str]:
    """Remove the folders of marked adapters; none of them is a champion any more."""
    gone = []
    for adapter in adapters:
        folder = settings.adapters_dir / adapter["track"] / adapter["directory"]
        current = folder.parent / "current"
        if folder.is_dir() and not (current.is_symlink() and current.resolve() == folder.resolve()):
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(f"{adapter['track']}/{adapter['directory']}")
    return gone


def _quoting_events(folder: Path) -> Iterator[Path]:
    """Event files with texts in them, which there are only beside W&B's tables."""
    for path in sorted(folder.rglob("events.out.tfevents.*")) if folder.is_dir() else ():
        if TABLE in path.read_bytes():
            yield path


def _quoting_tables(folder: Path, content_ids: Collection[int]) -> Iterator[Path]:
    """Tables of predictions with a row of one of these contents; one that cannot be read counts as such."""
    wanted = set(content_ids)
    for path in sorted(folder.rglob("predictions*.table.json")) if folder.is_dir() else ():
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            at = table["columns"].index("content_id")
            quotes = any(row[at] in wanted for row in table["data"])
        except (OSError, ValueError, LookupError, TypeError):
            quotes = True
        if quotes:
            yield path
