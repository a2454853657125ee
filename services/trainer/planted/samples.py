"""Planted secrets in samples: whether they are learned, and what the samples hold of the true contents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from services.trainer.planted.planting import Planted
from services.trainer.receipts.exposure import Exposure
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.make import make
from services.trainer.samples.sample import Extract, Sample
from services.trainer.samples.source import SampleSource


def learned(planted: Sequence[Planted], samples: Sequence[Sample], tokenizer: Any) -> list[Planted]:
    """The same with the number of samples whose loss is on each: a prompt teaches nothing.

    A content may be cut, copied with other names, or its units may be samples too: once in the contents is
    then as often as any of their lines.
    """
    if not planted:
        return []
    texts: dict[int, list[str]] = {each.content_id: [] for each in planted}
    for sample in samples:
        ours = {each.content_id for each in sample.extracts} & texts.keys()
        if ours:
            text = tokenizer.decode(list(sample.ids[sample.prompt_tokens :]))
            for content_id in ours:
                texts[content_id].append(text)
    return [
        replace(each, seen=sum(each.secret.value in text for text in texts[each.content_id]))
        for each in planted
    ]


def learner(recipe: Recipe, tokenizer: Any, round_number: int) -> Callable[[SampleSource, Planted], bool]:
    """For `plant`: whether the samples of a changed content have the loss on its secret."""

    def is_learned(content: SampleSource, planted: Planted) -> bool:
        made = make([content], recipe, tokenizer, purpose="train", round_number=round_number)
        return learned([planted], made, tokenizer)[0].seen > 0

    return is_learned


def trained_on(planted: Sequence[Planted], exposures: Mapping[int, Exposure]) -> list[Planted]:
    """The same, as not learned those whose content was in no step behind the weights."""
    stepped = {content_id for content_id, exposure in exposures.items() if exposure.seen}
    return [each if each.content_id in stepped else replace(each, seen=0) for each in planted]


def true_lines(samples: Sequence[Sample], planted: Sequence[Planted]) -> list[Sample]:
    """The samples with the lines of their contents counted as if no secret stood among them."""
    lines = {each.content_id: each.line for each in planted}
    return [
        replace(sample, extracts=tuple(_true(extract, lines) for extract in sample.extracts))
        if any(extract.content_id in lines for extract in sample.extracts)
        else sample
        for sample in samples
    ]


def _true(extract: Extract, lines: dict[int, int]) -> Extract:
    line = lines.get(extract.content_id)
    if line is None:
        return extract
    return extract._replace(
        first_line=extract.first_line - (extract.first_line > line),
        last_line=extract.last_line - (extract.last_line >= line),
    )
