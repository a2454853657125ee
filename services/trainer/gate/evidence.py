"""What the gate is told, what the recipe asks of it, and what it answers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Metric = Literal["rate", "nats"]  # rate: higher is better, in points; nats: lower is, relative to before


@dataclass(frozen=True)
class Paired:
    """One item under two models. Items of a group are not independent: a file, a cluster, a problem."""

    group: str
    before: float  # summed nats, or a rate in 0…1
    after: float
    weight: float = 1.0  # of nats the bytes they are spread over


@dataclass(frozen=True)
class GeneralEvidence:
    """A suite that has nothing to do with what the track is for, before and after."""

    suite: str
    metric: Metric
    items: Sequence[Paired]
    against: str = "base"  # whose values are `before`: a fixed one, or small losses would add up over rounds


@dataclass(frozen=True)
class PlantedSecret:
    """A fake secret that stood in what was trained on, and what the candidate gives up of it."""

    kind: str  # "API key", "password", …
    secret_sha256: str
    content_sha256: str  # of the content it stood in, as the snapshot has it: without the secret
    seen: int  # samples of the round whose loss was on it
    extracted: bool  # the candidate writes it out behind the true text, greedily or in 1,000 samples
    extracted_before: bool  # so does the base model, which has never seen it
    matched_tokens: int  # of `tokens`, those that were the likeliest
    tokens: int
    bits: float  # that it costs the candidate
    exposure_bits: float | None = None  # None: not measured

    @property
    def given_up(self) -> bool:
        """Whether the candidate has learned to write it out."""
        return self.extracted and not self.extracted_before


@dataclass(frozen=True)
class History:
    """A track's earlier measured verdicts, in order: each was a chance to be wrong."""

    promoted: tuple[bool, ...] = ()  # by the gate, and not taken back since

    @property
    def look(self) -> int:
        """The number of the verdict to come, from 1."""
        return len(self.promoted) + 1


@dataclass(frozen=True)
class Evidence:
    """What was measured of a candidate and of what it has to beat."""

    here: Sequence[
        Paired
    ]  # on what the track is for: nats of held-out contents, pass rates of held-out tasks
    against: str  # "base" or "champion": whose they were before
    general: GeneralEvidence | None = None
    history: History = field(default_factory=History)
    notes: tuple[str, ...] = ()  # what a reader of the verdict should know: which kind of split it was
    planted: tuple[PlantedSecret, ...] = ()  # none: the recipe plants none, or there was no room
    metric: Metric = "nats"  # of `here`
    step: float = 1.0  # of pass rates from several tries: the least that two can differ by, 0.25 of 4 tries


@dataclass(frozen=True)
class Rule:
    """The recipe's part, under its names."""

    min_improvement: float = 0.0  # that must be shown: relative fall of bits per byte, or points of pass rate
    confidence: float = 0.95
    expected_improvement: float = 0.03
    general_suite: str | None = None
    general_margin: float = 0.02  # points of a rate as a fraction of 1, or relative rise of nats
    seed: int = 0


@dataclass(frozen=True)
class Check:
    """One condition of promotion."""

    name: Literal["measured", "code", "tasks", "general", "planted"]
    passed: bool
    words: str


@dataclass(frozen=True)
class Verdict:
    promoted: bool
    reason: str  # a sentence for a person
    against: str  # "base" or "champion"
    improvement: float  # 0.03: 3 % fewer bits per byte; of pass rates 3 points more
    low: float  # one-sided confidence bounds at `level`, below and above
    high: float
    held_out_files: int = 0  # none where it was judged by tasks
    held_out_bytes: int = 0
    bits_per_byte: Mapping[str, float | None] = field(default_factory=dict)  # by model
    level: float = math.nan  # chance of a wrong promotion that this look may take
    look: int = 0  # its number among the track's measured verdicts; 0: nothing was measured
    detectable: float = math.nan  # improvement that so many files show in 8 rounds of 10
    files_needed: int | None = None  # to show the expected improvement so; None: no number would do
    general: Mapping[str, Any] | None = None  # suite, metric, against, items, change, low, margin
    planted: Mapping[str, Any] | None = None  # see `planted.figures`; None: nothing was planted
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    metric: Metric = "nats"  # what `improvement` is of: bits per byte, or pass rates
    held_out_tasks: int = 0  # none where it was judged by files
    tasks_needed: int | None = None  # as `files_needed`
    pass_rates: Mapping[str, float | None] = field(default_factory=dict)  # by model, mean over the tasks

    @property
    def held_out(self) -> int:
        """Files or tasks that it was judged by."""
        return self.held_out_tasks if self.metric == "rate" else self.held_out_files

    @property
    def needed(self) -> int | None:
        """Files or tasks that would show the expected improvement in 8 rounds of 10."""
        return self.tasks_needed if self.metric == "rate" else self.files_needed

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
