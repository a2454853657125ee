"""What a verdict is made from: the champion's manifest, and its round's rows in the database."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from services.core.db import Transaction
from services.core.errors import RatchetError
from services.core.models import Json
from services.trainer import publish
from services.trainer.comparing import questions
from services.trainer.gate.evidence import Metric
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.source import SampleSource
from services.trainer.selection.snapshots import sample_source
from services.trainer.subjects import champion_folder
from services.trainer.verdict.advice import Elsewhere
from services.trainer.verdict.corpus import Text

CORPUS_BYTES = 64_000_000  # of text that is searched at most; an index of as much takes half a minute


@dataclass(frozen=True)
class Champion:
    """A published adapter or model, and how it was made."""

    folder: Path
    recipe: Recipe  # as of its round
    manifest: Json

    @property
    def round_number(self) -> int:
        return int(self.manifest["round"])

    @property
    def elsewhere(self) -> Elsewhere | None:
        """The gate's figures of general ability; None where it had none."""
        found = (self.manifest["metrics"]["verdict"] or {}).get("general")
        if not found or found.get("change") is None or found.get("low") is None:
            return None
        metric: Metric = "rate" if found["metric"] == "rate" else "nats"
        return Elsewhere(found["suite"], metric, found["change"], found["low"], found["margin"])


@dataclass(frozen=True)
class Evidence:
    held_out: tuple[SampleSource, ...]  # no round of the track has trained on them; with their clusters
    corpus: tuple[Text, ...]  # of the same sources
    training_seconds: float | None  # of all rounds up to the champion's, refused ones too
    split: str | None  # time or cluster


def champion(adapters_dir: Path, recipe: Recipe) -> Champion:
    """The recipe's champion. Raises ConfigurationError without one, PublishError when it is damaged."""
    folder = champion_folder(adapters_dir, recipe, "or name another recipe with --recipe")
    manifest = publish.verify(folder)
    return Champion(folder, Recipe.model_validate(manifest["recipe"]), manifest)


def read(tx: Transaction, found: Champion) -> Evidence:
    """The rows of the champion's round.

    Raises RatchetError when the database does not know the round, or nothing was held out in it.
    """
    track = found.recipe.name
    rounds = tx.all("verdict_rounds", track=track, number=found.round_number)
    if not rounds or rounds[-1].number != found.round_number:
        raise RatchetError(
            f"the database knows no round {found.round_number} of {track}, which made {found.folder}: ask the"
            " database that it was trained with (DATABASE_URL), or train one here with `ratchet up`"
        )
    rows = tx.all("verdict_held_out", round_id=rounds[-1].id)
    if not rows:
        raise RatchetError(
            f"round {found.round_number} of {track} held nothing out: add more code, and let a round run"
        )
    held_out = tuple(_held_out(row) for row in rows)
    sources = sorted({each.repository for each in held_out} - {""})
    corpus = tx.all("verdict_corpus", sources=sources, most_bytes=CORPUS_BYTES)
    return Evidence(
        held_out,
        tuple(Text(row.cluster_id, row.source, row.path, row.text) for row in corpus),
        seconds([row.training for row in rounds]),
        (rounds[-1].held_out or {}).get("kind"),
    )


def seconds(trainings: Sequence[Json | None]) -> float | None:
    """Spent in training steps over all of them; None when none says."""
    known = [found["seconds"] for found in trainings if found and found.get("seconds") is not None]
    return math.fsum(known) if known else None


def _held_out(row: Any) -> SampleSource:
    spans = None if row.judged is None else tuple((start, end) for start, end in row.judged)
    return replace(sample_source(row), judged=spans, cluster_id=row.cluster_id)


def as_json(found: Evidence) -> Json:
    """What the process with the model is sent."""
    return {
        "held_out": questions.as_json(found.held_out),
        "corpus": [asdict(text) for text in found.corpus],
    }
