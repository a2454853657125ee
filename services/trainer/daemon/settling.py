"""A track's folders brought in line with its ledger."""

import logging
import shutil
from pathlib import Path

from services.core.errors import PublishError
from services.trainer import publish
from services.trainer.ledger import Ledger

log = logging.getLogger(__name__)


def settle(ledger: Ledger, adapters: Path, checkpoints: Path) -> None:
    """What a crash may have left: `current` behind the ledger, temporaries, unrecorded folders.

    adapters, checkpoints: the track's own.
    """
    champion, opened = ledger.champion(), ledger.open_round()
    for kept in checkpoints.glob("round-*"):
        if opened is None or kept.name != f"round-{opened.number:04}":  # nobody takes it up again
            shutil.rmtree(kept, ignore_errors=True)
    try:
        publish.settle(adapters, None if champion is None else champion.directory, ledger.directories())
    except PublishError as exc:
        log.error("%s", exc)


def follow(ledger: Ledger, adapters: Path) -> None:
    """What was moved by hand: `current` goes along."""
    try:
        ledger.champions(adapters).follow()
    except PublishError as exc:
        log.error("%s", exc)
