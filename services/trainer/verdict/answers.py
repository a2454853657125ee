"""What four ways of completing code wrote, and what it took: the arms of a verdict, and their figures."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Literal

import numpy as np

from services.core.models import Json
from services.trainer.gate.bootstrap import bounds

Metric = Literal["exact_match", "edit_similarity"]
TOGETHER = 0.95  # confidence that all intervals of a verdict hold at once


class Arm(StrEnum):
    BASE = "base"  # the model as it came
    RETRIEVAL = "retrieval"  # the same, shown snippets of the repository
    ADAPTER = "adapter"  # the champion
    BOTH = "both"  # the champion, shown the snippets


NAMES = {
    Arm.BASE: "base",
    Arm.RETRIEVAL: "base + retrieval",
    Arm.ADAPTER: "adapter",
    Arm.BOTH: "adapter + retrieval",
}
COMPARED = (
    (Arm.RETRIEVAL, Arm.BASE),
    (Arm.ADAPTER, Arm.BASE),
    (Arm.BOTH, Arm.BASE),
    (Arm.ADAPTER, Arm.RETRIEVAL),
    (Arm.BOTH, Arm.RETRIEVAL),
    (Arm.BOTH, Arm.ADAPTER),
)
CONFIDENCE = 1 - (1 - TOGETHER) / len(COMPARED)  # of each (Bonferroni)


@dataclass(frozen=True)
class Answer:
    """One completion under one arm."""

    name: str  # src/app.py:40
    group: str  # its file's cluster: completions of a file, and of near-duplicates, are not independent
    exact_match: float  # 1 or 0
    edit_similarity: float  # 0…1
    prompt_tokens: int
    written_tokens: int
    text: str = ""


@dataclass(frozen=True)
class Run:
    """All completions of one arm, the same items in the same order in every arm."""

    arm: Arm
    answers: tuple[Answer, ...]
    latencies: tuple[float, ...]  # seconds of a completion asked for alone, retrieval included
    seconds: float  # of the device for all answers, written in batches

    def as_json(self) -> Json:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Json) -> "Run":
        answers = tuple(Answer(**each) for each in fields["answers"])
        return cls(Arm(fields["arm"]), answers, tuple(fields["latencies"]), fields["seconds"])


@dataclass(frozen=True)
class Figures:
    """What an arm comes to, a completion on average."""

    exact_match: float
    edit_similarity: float
    latency_p50: float  # seconds
    latency_p90: float
    prompt_tokens: float
    written_tokens: float
    device_seconds: float


@dataclass(frozen=True)
class Difference:
    """Of two arms over the same items: the mean, and where it lies at `CONFIDENCE`."""

    mean: float
    low: float
    high: float

    @property
    def is_better(self) -> bool:
        return self.low > 0

    @property
    def is_worse(self) -> bool:
        return self.high < 0


def figures(run: Run) -> Figures:
    """Raises ValueError for a run without answers."""
    if not run.answers:
        raise ValueError(f"the arm {run.arm} has no answer: expected one at least")
    count = len(run.answers)

    def mean(name: str) -> float:
        return math.fsum(getattr(answer, name) for answer in run.answers) / count

    p50, p90 = np.quantile(run.latencies, (0.5, 0.9)) if run.latencies else (math.nan, math.nan)
    return Figures(
        mean("exact_match"),
        mean("edit_similarity"),
        float(p50),
        float(p90),
        mean("prompt_tokens"),
        mean("written_tokens"),
        run.seconds / count,
    )


def difference(
    before: Run, after: Run, metric: Metric, *, confidence: float = CONFIDENCE, seed: int = 0
) -> Difference:
    """after - before, with an interval of a paired, studentised bootstrap (`gate.bootstrap`).

    Whole clusters of files are drawn, since what lies in one is alike (Miller 2024, arXiv 2411.00640,
    section 2.2). One alone says nothing: anything is possible then. Raises ValueError when the runs are not
    of the same items.
    """
    if [a.name for a in before.answers] != [a.name for a in after.answers] or not before.answers:
        raise ValueError(f"{before.arm} and {after.arm} did not answer the same items")
    changes: dict[str, list[float]] = {}  # of each cluster
    for a, b in zip(before.answers, after.answers, strict=True):
        changes.setdefault(a.group, []).append(getattr(b, metric) - getattr(a, metric))
    sums = [(math.fsum(each), len(each)) for each in changes.values()]
    if len(sums) == 1:
        return Difference(sums[0][0] / sums[0][1], -1.0, 1.0)
    # Rates are discrete: as if half an item more had been won and half an item lost.
    least = 1 / (len(before.answers) + 2) ** 2 if metric == "exact_match" else 0.0
    found = bounds(sums, (1 - confidence) / 2, seed, least_variance=least)
    return Difference(found.estimate, max(-1.0, found.low), min(1.0, found.high))


def files(run: Run) -> int:
    return len({answer.name.rpartition(":")[0] for answer in run.answers})


def differences(runs: Sequence[Run], metric: Metric) -> dict[tuple[Arm, Arm], Difference]:
    """Every pair of `COMPARED`: how much the first is better than the second."""
    by_arm = {run.arm: run for run in runs}
    return {(a, b): difference(by_arm[b], by_arm[a], metric) for a, b in COMPARED}
