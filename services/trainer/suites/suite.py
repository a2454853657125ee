"""A suite: items with a right answer, and how a model does on each. Higher values are better."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from services.core.models import Json

Metric = Literal["pass@1", "exact_match", "edit_similarity", "keywords", "nats"]


@dataclass(frozen=True)
class Score:
    """One item's value under one model."""

    item: str  # its key: SHA-256 of all that decides its value, but for the weights
    name: str  # for a person: HumanEval/12, src/app.py:40
    group: str  # items of a group are not independent: its file, or itself
    metric: Metric
    value: float  # in 0…1; of `nats` the summed loss, of which less is better
    weight: float = 1.0  # of `nats` the bytes
    detail: Json = field(default_factory=dict)  # the text that was written, why it failed


@dataclass(frozen=True)
class Report:
    """What one model scored on one suite."""

    suite: str
    version: str  # SHA-256 over its items: results of two versions are not compared
    scores: tuple[Score, ...]
    seconds: float
    from_cache: int = 0  # of the scores
    figures: Mapping[str, float] = field(
        default_factory=dict
    )  # pass@1, pass@10, exact_match, bits_per_byte, …
