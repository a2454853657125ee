"""An experiment as the trials it consists of: stage by stage, each a training and its scoring. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.trainer.experiments.experiment import Experiment, Form, Variant
from services.trainer.experiments.folds import folds

CHECK, ALL = "check", "all"
CHECK_FOLDS, CHECK_PROGRAMS = 2, 2


@dataclass(frozen=True)
class Stage:
    """How much of everything: the check takes a little of each."""

    name: str
    problems: tuple[str, ...]
    seeds: tuple[int, ...]
    folds: int
    samples: int  # programs a problem, seed and form


@dataclass(frozen=True)
class Trial:
    """One training of an arm, and the problems it is scored on. An untrained arm has all of them in one."""

    stage: str
    arm: str
    seed: int
    fold: int  # from 1
    trained_on: tuple[str, ...]
    scored_on: tuple[str, ...]
    forms: tuple[Form, ...]
    samples: int

    @property
    def folder(self) -> Path:
        """Below the experiment's own."""
        return Path(self.stage, self.arm, f"seed-{self.seed}", f"fold-{self.fold}")

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(Variant(self.arm, form) for form in self.forms)

    def __str__(self) -> str:
        return f"{self.stage}: {self.arm}, seed {self.seed}, fold {self.fold}"


def stages(experiment: Experiment, names: Sequence[str]) -> list[Stage]:
    """The check of the plumbing, unless the experiment has none, and the whole."""
    names = tuple(names[: experiment.most_problems])
    whole = Stage(ALL, names, experiment.seeds, experiment.folds, experiment.samples)
    checked = names[: experiment.check_samples]
    if len(checked) < CHECK_FOLDS:
        return [whole]
    few = min(CHECK_PROGRAMS, experiment.samples)
    return [Stage(CHECK, checked, experiment.seeds[:1], CHECK_FOLDS, few), whole]


def trials(experiment: Experiment, stage: Stage) -> list[Trial]:
    """Seed by seed and fold by fold through all arms, so that what is done early can be compared."""
    parts = folds(stage.problems, stage.folds)
    made = []
    for seed in stage.seeds:
        for fold, part in enumerate(parts, 1):
            for name, arm in experiment.arms.items():
                if not arm.is_trained and fold > 1:
                    continue
                others = tuple(one for one in stage.problems if one not in part) if arm.is_trained else ()
                scored = part if arm.is_trained else stage.problems
                made.append(Trial(stage.name, name, seed, fold, others, scored, arm.prompts, stage.samples))
    return made
