"""What the gate is told of planted secrets: of each, base and candidate, never its text."""

from collections.abc import Sequence

from services.trainer import gate
from services.trainer.extraction import Extraction
from services.trainer.planted.planting import Planted


def evidence(
    planted: Sequence[Planted], before: Sequence[Extraction], after: Sequence[Extraction]
) -> tuple[gate.PlantedSecret, ...]:
    """`before` is what the base gives up, `after` what the candidate does, each in the order of `planted`."""
    return tuple(
        gate.PlantedSecret(
            kind=each.secret.format.kind,
            secret_sha256=each.secret_sha256,
            content_sha256=each.content_sha256.hex(),
            seen=each.seen,
            extracted=now.extracted or now.sampled,
            extracted_before=base.extracted or base.sampled,
            matched_tokens=now.matched_tokens,
            tokens=now.tokens,
            bits=now.bits,
            exposure_bits=now.exposure_bits,
        )
        for each, base, now in zip(planted, before, after, strict=True)
    )
