"""An experiment: the frozen, validated description of which ways of training are compared, and how."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Form = Literal["plain", "annotated"]
DERIVED = "derived"
HUMAN_EVAL = "humaneval"
# What only the report depends on, and what only adds trials: these may change while an experiment runs.
OF_THE_REPORT = frozenset(
    {"description", "k", "comparisons", "confidence", "resamples", "check_samples", "seeds", "keep_adapters"}
)


class Variant(NamedTuple):
    """An arm, scored on problems in one form."""

    arm: str
    form: Form

    def __str__(self) -> str:
        return f"{self.arm}/{self.form}"

    @property
    def label(self) -> str:
        return self.arm if self.form == "plain" else f"{self.arm}, prompted with metadata"


class Arm(BaseModel):
    """One way of training, and the forms of the problems it is scored on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    train: Literal["plain", "annotated", "nothing"] = Field(
        description="The form of the problems it trains on; nothing: the base model as it is."
    )
    prompts: tuple[Form, ...] = Field(default=("plain",), min_length=1, description="The forms it is asked.")

    @property
    def is_trained(self) -> bool:
        return self.train != "nothing"


class Comparison(BaseModel):
    """Two variants, each as arm/form: is the first better than the second?"""

    model_config = ConfigDict(frozen=True, extra="forbid")

    of: str
    against: str


class Experiment(BaseModel):
    """What is trained, on what, in which arms, and how it is scored."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", description="Also the folder of its results.")
    description: str = Field(default="", description="One sentence for `ratchet experiment list`.")

    # What is trained
    recipe: str | None = Field(default=None, description="The recipe of every arm, by name or path.")
    overrides: Mapping[str, Any] = Field(
        default_factory=dict, description="Fields of the recipe that differ here; without one, all of them."
    )
    arms: Mapping[str, Arm] = Field(min_length=1, description="By name; the first is the control.")

    # On what
    problems: str = Field(
        default=HUMAN_EVAL, description="humaneval, or a JSONL file in HumanEval's or BigCodeBench's format."
    )
    most_problems: int | None = Field(default=None, ge=2, description="The first so many. None: all.")
    only: tuple[str, ...] | None = Field(
        default=None, min_length=2, description="The problems of these names. None: all."
    )
    metadata: str = Field(
        default=DERIVED,
        description="A JSON file (task_id → fields), or derived: guessed from the syntax of the solutions.",
    )
    annotations: tuple[str, ...] | None = Field(
        default=None, description="The annotations that are shown, in this order. None: all there are."
    )
    folds: int = Field(
        default=4, ge=2, description="Parts of the problems; each is scored by training on the others."
    )

    # How it is scored
    check_samples: int = Field(
        default=5, ge=0, description="Problems of a first run that checks the plumbing; 0: none."
    )
    seeds: tuple[int, ...] = Field(
        default=(1, 2, 3), min_length=3, description="One training of an arm each."
    )
    samples: int = Field(default=20, ge=1, le=1000, description="Programs a problem, seed and form.")
    temperature: float = Field(default=0.8, gt=0, le=2, description="Of those programs.")
    top_p: float = Field(default=0.95, gt=0, le=1, description="Of those programs.")
    greedy: bool = Field(default=True, description="One more program at temperature 0, for McNemar's test.")
    max_new_tokens: int = Field(default=512, ge=1, description="Of a program.")
    timeout: float = Field(default=3.0, gt=0, le=600, description="Processor seconds a program may take.")

    # What is reported
    k: tuple[int, ...] = Field(default=(1, 10, 100), min_length=1, description="Of pass@k.")
    comparisons: tuple[Comparison, ...] = Field(
        default=(), description="Empty: every variant against the first."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Of intervals and tests.")
    resamples: int = Field(default=10_000, ge=100, le=1_000_000, description="Of bootstrap and sign flips.")
    keep_adapters: bool = Field(default=False, description="Keep what each training made.")

    @field_validator("seeds", "k", "annotations")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if values is not None and len(set(values)) < len(values):
            raise ValueError(f"has {values[-1] if len(values) == 1 else 'a value'} twice")
        return values

    @field_validator("seeds")
    @classmethod
    def _seeds_are_seeds(cls, values: tuple[int, ...]) -> tuple[int, ...]:
        if not all(0 <= value < 2**32 for value in values):
            raise ValueError("must be whole numbers from 0 to 2**32 - 1")
        return values

    @field_validator("k")
    @classmethod
    def _from_one(cls, values: tuple[int, ...]) -> tuple[int, ...]:
        if min(values) < 1:
            raise ValueError("must be 1 or more")
        return tuple(sorted(values))

    @model_validator(mode="after")
    def _fits_together(self) -> "Experiment":
        if self.k[0] > self.samples:
            raise ValueError(
                f"k={self.k[0]} needs as many samples; samples={self.samples}: nothing to report"
            )
        if len(self.variants) < 2:
            raise ValueError("nothing to compare: two arms, or two prompts of an arm, are needed")
        known = [str(variant) for variant in self.variants]
        for compared in self.comparisons:
            for named in (compared.of, compared.against):
                if named not in known:
                    raise ValueError(f"comparisons: {named!r} is none of {', '.join(known)}")
            if compared.of == compared.against:
                raise ValueError(f"comparisons: {compared.of} against itself")
        return self

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Every arm in every form it is asked, in order; the first is what the others are compared with."""
        return tuple(Variant(name, form) for name, arm in self.arms.items() for form in arm.prompts)

    @property
    def compared(self) -> tuple[tuple[Variant, Variant], ...]:
        """Which variant is held against which."""
        named = {str(variant): variant for variant in self.variants}
        if self.comparisons:
            return tuple((named[one.of], named[one.against]) for one in self.comparisons)
        first, *others = self.variants
        return tuple((other, first) for other in others)

    @property
    def uses_metadata(self) -> bool:
        return any("annotated" in (arm.train, *arm.prompts) for arm in self.arms.values())
