"""The end of a round of any kind: commit, then move `current`, then tidy."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from services.core.models import Json, RoundState, Subject
from services.core.process import failpoint
from services.trainer import gate, publish
from services.trainer.context import Context
from services.trainer.ledger import Round


def close(
    context: Context,
    round_: Round,
    verdict: gate.Verdict,
    training: Json | None = None,
    losses: Mapping[Subject, Sequence[Any]] | None = None,
    manifest: Json | None = None,
) -> None:
    """In this order a crash leaves nothing half published. Only the first process does anything."""
    if not context.distribution.is_first:
        return
    books = context.first_books
    closing = books.ledger.close(
        books.lease,
        round_,
        state=RoundState.PROMOTED if verdict.promoted else RoundState.REFUSED,
        training=training,
        verdict=verdict.as_json(),
        losses=losses or {},
        manifest=manifest,
    )
    failpoint("publish.after_commit")
    books.ledger.champions(context.track_dir).follow()
    if manifest is not None and round_.name not in books.ledger.directories():
        publish.discard(context.track_dir, round_.name)
    shutil.rmtree(context.folder(round_), ignore_errors=True)
    context.heart.beat(urgent=True, message=closing.reason)
