"""Asking a round's model for the secrets that were planted in it."""

from collections.abc import Sequence
from typing import Any

from services.core.models import ServiceState, Subject
from services.trainer.context import Context
from services.trainer.engine.compute import Compute
from services.trainer.extraction import Extraction, Probe, extract
from services.trainer.planted.planting import OTHERS, Planted

OTHERS_ON_CPU = 8  # secrets that each is compared with: enough for a spread, and seconds on two cores


def probe(
    context: Context, trained: Any, tokenizer: Any, compute: Compute, planted: Sequence[Planted],
    subject: Subject,
) -> list[Extraction]:  # fmt: skip
    """What the model as it stands gives up, in every process the same.

    Nothing is asked of the champion, which is not judged by them. The exposure is the candidate's alone: to
    the base each secret is one of its format like the others.
    """
    if subject is Subject.CHAMPION:
        return []
    others = 0
    if subject is Subject.CANDIDATE:
        others = OTHERS if context.distribution.device.type == "cuda" else OTHERS_ON_CPU

    def on_done(done: int, total: int) -> None:
        context.leave_if_asked()
        context.heart.beat(
            state=ServiceState.EVALUATING, message=f"{subject}: planted secrets {done}/{total} rows"
        )

    probes = [
        Probe(each.secret_sha256[:12], each.prefix, each.secret.value, each.secret.others[:others])
        for each in planted
    ]
    return extract(
        trained, tokenizer, probes, compute=compute, distribution=context.distribution, on_done=on_done
    )
