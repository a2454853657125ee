"""What the gate is told, what the recipe asks of it, and what it answers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

GeneralMetric = Literal["rate", "nats"]


@dataclass(frozen=True)
class Paired:
    """One item under two models. Items of a group are not independent: a file, a cluster, a problem."""

    group: str
    before: float  # summed nats, or a rate in 0…1
    after: float
    weight: float = 1.0  # of nats the bytes they are spread over


@dataclass(frozen=True)
class GeneralEvidence:
    """A suite that has nothing to do with this code, before and after."""

    suite: str
    metric: GeneralMetric  # rate: higher is better; nats: lower is
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
    code: Sequence[Paired]  # nats of held-out contents
    against: str  # "base" or "champion": whose they were before
    general: GeneralEvidence | None = None
    history: History = field(default_factory=History)
    notes: tuple[str, ...] = ()  # what a reader of the verdict should know: which kind of split it was
    planted: tuple[PlantedSecret, ...] = ()  # none: the recipe plants none, or there was no room


@dataclass(frozen=True)
class Rule:
    """The recipe's part, under its names."""

    min_improvement: float = 0.0  # relative fall of bits per byte that must be shown
    confidence: float = 0.95
    expected_improvement: float = 0.03
    general_suite: str | None = None
    general_margin: float = 0.02  # points of a rate as a fraction of 1, or relative rise of nats
    seed: int = 0


@dataclass(frozen=True)
class Check:
    """One condition of promotion."""

    name: Literal["measured", "code", "general", "planted"]
    passed: bool
    words: str


@dataclass(frozen=True)
class Verdict:
    promoted: bool
    reason: str  # a sentence for a person
    against: str  # "base" or "champion"
    improvement: float  # relative fall of bits per byte, 0.03 = 3 % fewer
    low: float  # one-sided confidence bounds at `level`, below and above
    high: float
    held_out_files: int
    held_out_bytes: int
    bits_per_byte: Mapping[str, float | None] = field(default_factory=dict)
    level: float = math.nan  # chance of a wrong promotion that this look may take
    look: int = 0  # its number among the track's measured verdicts; 0: nothing was measured
    detectable: float = math.nan  # improvement that so many files show in 8 rounds of 10
    files_needed: int | None = None  # to show the expected improvement so; None: no number would do
    general: Mapping[str, Any] | None = None  # suite, metric, against, items, change, low, margin
    planted: Mapping[str, Any] | None = None  # see `planted.figures`; None: nothing was planted
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
