"""Held-out losses of base, champion and candidate, by which the gate decides; measured once a round."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path

from services.core.models import ServiceState, Subject
from services.trainer import evaluate
from services.trainer.context import Context
from services.trainer.engine.compute import Compute
from services.trainer.evaluate import ContentLoss
from services.trainer.packing import Row

log = logging.getLogger(__name__)


def measure(
    context: Context, compute: Compute, rows: Sequence[Row], pad_id: int, *, what: str
) -> list[ContentLoss]:
    """The losses of the rows' contents under the model as it stands; in every process the same."""

    def on_rows(done: int, total: int) -> None:
        context.leave_if_asked()
        context.heart.beat(
            state=ServiceState.EVALUATING, message=f"held-out loss of the {what}: {done}/{total} rows"
        )

    items = evaluate.losses(
        compute,
        rows,
        rows_at_once=context.recipe.batch_size,
        pad_id=pad_id,
        longest=context.recipe.max_length,
        distribution=context.distribution,
        on_rows=on_rows,
    )
    log.info("%s: %.4f bits per byte over %d contents", what, evaluate.bits_per_byte(items), len(items))
    return items


def kept(
    context: Context, folder: Path, subject: Subject, work: Callable[[], list[ContentLoss]]
) -> list[ContentLoss]:
    """What `work` measures, or did before the round was interrupted: base and champion do not change."""
    path = folder / f"{subject}-losses.json"
    found = context.distribution.agree(lambda: _read(path))
    if found is not None:
        return found
    items = work()
    context.distribution.agree(lambda: _write(path, items))
    return items


def _read(path: Path) -> list[ContentLoss] | None:
    try:
        return [ContentLoss(*fields) for fields in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return None


def _write(path: Path, items: Sequence[ContentLoss]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(json.dumps([astuple(item) for item in items]), encoding="utf-8")
    unfinished.replace(path)
