"""A round's snapshot as packed rows: what is trained on, what stops early, what the gate judges by."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.core.models import ContentRole
from services.trainer import gate
from services.trainer.context import Context
from services.trainer.evaluate import first_samples
from services.trainer.packing import Row, pack
from services.trainer.planted import Planted, learned, learner, plant, true_lines
from services.trainer.samples import solutions
from services.trainer.samples.make import make
from services.trainer.samples.sample import Sample
from services.trainer.samples.solutions import Solution
from services.trainer.samples.source import SampleSource

log = logging.getLogger(__name__)
JUDGED = (ContentRole.VALIDATION, ContentRole.HELD_OUT)  # every other role is trained on


@dataclass(frozen=True)
class Rows:
    train: list[Row]
    validation: list[Row]
    held_out: list[Row]
    held_out_contents: list[SampleSource]  # what the rows of that name are of
    planted: list[Planted] = field(default_factory=list)  # fake secrets in what is trained on


def make_rows(
    context: Context,
    snapshot: Mapping[ContentRole, Sequence[SampleSource]],
    tokenizer: Any,
    round_number: int,
    solved: Sequence[Solution] = (),
) -> Rows:
    """Samples as the recipe says, packed; of a judged content at most `held_out_pairs` samples.

    In what is new to the round stand its planted secrets; neither replay nor what judges has any. `solved`
    are programs of reinforcement rounds, to be learned from beside the contents.
    """
    recipe = context.recipe
    is_learned = learner(recipe, tokenizer, round_number)
    new, planted = plant(snapshot.get(ContentRole.TRAIN, ()), recipe, round_number, is_learned)
    others = [role for role in snapshot if role not in (*JUDGED, ContentRole.TRAIN)]
    train = [*new, *(content for role in others for content in snapshot[role])]
    parts = {"train": train, **{str(role): snapshot.get(role, []) for role in JUDGED}}
    rows: dict[str, list[Row]] = {}
    for part, contents in parts.items():

        def on_content(done: int, of: int, part: str = part) -> None:
            context.interruption.check()
            context.heart.beat(message=f"making samples: {part} {done}/{of}")

        made: list[Sample] = make(
            contents,
            recipe,
            tokenizer,
            purpose="train" if part == "train" else "judge",
            round_number=round_number,
            on_content=on_content,
        )
        if part == "train":
            made = true_lines(made, planted)
            planted = learned(planted, made, tokenizer)
            made = solutions.samples(solved, recipe, tokenizer, made, f"{recipe.seed} {round_number}")
        else:
            made = first_samples(made, recipe.held_out_pairs)
        in_order = recipe.curriculum and part == "train"
        rows[part] = pack(made, recipe.max_length, keep_order=in_order)
        tokens = sum(row.tokens for row in rows[part])
        log.info(
            "%s: %d contents, %d samples, %d rows, %d tokens",
            part, len(contents), len(made), len(rows[part]), tokens,
        )  # fmt: skip
    held_out = list(snapshot.get(ContentRole.HELD_OUT, ()))
    log.info(
        "%d fake secrets planted, %d of them where they are learned",
        len(planted), sum(each.seen > 0 for each in planted),
    )  # fmt: skip
    return Rows(rows["train"], rows["validation"], rows["held_out"], held_out, planted)


def lacking(rows: Rows) -> str | None:
    """Why this snapshot cannot be trained on and judged, or None."""
    judged = {sample.content_id for row in rows.held_out for sample in row.samples}
    clusters = {each.cluster_id for each in rows.held_out_contents if each.content_id in judged}
    if (why := gate.too_few(len(judged), len(clusters))) is not None:
        return why
    if not rows.validation:  # the gate's own files are no substitute
        return "no file is left for early stopping to look at: add more code"
    return None if rows.train else "no content is long enough to make a sample of: add more code"


def mean_document_tokens(rows: Sequence[Row]) -> float:
    """The mean over tokens of their document's length, Σn² / Σn: what attention costs goes with it."""
    lengths = [len(sample.ids) for row in rows for sample in row.samples]
    return sum(length * length for length in lengths) / max(1, sum(lengths))
