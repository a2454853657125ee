"""What an experiment found: frozen values between the analysis, the conclusion and the report."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from services.core.models import Json
from services.trainer.experiments.trials import ALL


@dataclass(frozen=True)
class Figures:
    """What one variant scored, over all problems."""

    variant: str
    label: str
    pass_at: Mapping[int, float]  # k → pass@k
    by_seed: Mapping[int, float]  # seed → pass@1
    seed_deviation: float | None  # of pass@1 between seeds
    greedy: float | None  # share of problems that most seeds' greedy programs pass
    bits_per_byte: float  # of the solutions, which the training has not seen
    truncated: float  # share of programs that max_new_tokens cut off
    curve: tuple[tuple[int, float], ...]  # (k, pass@k) for every k there are programs for


@dataclass(frozen=True)
class Difference:
    """Pass@k of one variant minus that of another, problem by problem."""

    of: str
    against: str
    k: int
    difference: float
    low: float  # ends of its bootstrap interval over problems
    high: float
    p: float  # by sign flips
    p_adjusted: float  # Holm's, over all tests of the report
    shown: bool
    detectable: float  # a difference so large would be seen in 8 of 10 such experiments, without Holm
    by_seed: Mapping[int, float]
    seed_deviation: float | None


@dataclass(frozen=True)
class Greedy:
    """Problems whose greedy programs pass under one of two variants alone (most seeds decide)."""

    of: str
    against: str
    only_of: int
    only_against: int
    p: float  # McNemar's exact test
    p_adjusted: float
    shown: bool


@dataclass(frozen=True)
class LossDifference:
    """Bits per byte of unseen solutions: of one variant minus another's. Less is better. Not a test."""

    of: str
    against: str
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Report:
    """All that an experiment found."""

    name: str
    description: str
    stage: str
    problems: int
    folds: int
    seeds: tuple[int, ...]
    samples: int
    confidence: float
    base_model: str
    metadata: str
    not_measured: tuple[int, ...]  # k for which there are too few programs
    variants: tuple[Figures, ...]
    differences: tuple[Difference, ...]
    greedy: tuple[Greedy, ...]
    losses: tuple[LossDifference, ...]
    training: Json  # means over the trainings
    conclusions: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    settings: Json = field(default_factory=dict)

    @property
    def is_check(self) -> bool:
        return self.stage != ALL

    def as_json(self) -> Json:
        return asdict(self)
