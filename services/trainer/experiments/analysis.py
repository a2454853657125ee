"""From what the trials measured to figures, differences and tests. Pure; the unit is the problem.

A problem's value is its mean over seeds, so that neither seeds nor programs pass for independent problems.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from services.core.models import Json
from services.trainer.experiments import conclusion
from services.trainer.experiments.experiment import Variant
from services.trainer.experiments.files import Loaded
from services.trainer.experiments.findings import Difference, Figures, Greedy, LossDifference, Report
from services.trainer.experiments.significance import (
    bootstrap_interval,
    holm,
    mcnemar_exact,
    sign_flip_p,
    standard_deviation,
)
from services.trainer.experiments.store import Scored
from services.trainer.experiments.trials import Stage
from services.trainer.suites.estimators import pass_at_k

DETECTABLE = 1.96 + 0.84  # standard errors: a test at 5 % then has a power of 80 %
By = Mapping[str, Mapping[int, Scored]]  # problem → seed → what was measured


def analyse(loaded: Loaded, stage: Stage, scored: Sequence[Scored], training: Sequence[Json]) -> Report:
    """The report of a stage whose trials are all done."""
    experiment = loaded.experiment
    by_variant = {variant: _by(scored, variant) for variant in experiment.variants}
    ks = [k for k in experiment.k if k <= stage.samples]
    tested: list[Difference | Greedy] = []
    losses = []
    for of, against in experiment.compared:
        pair = by_variant[of], by_variant[against]
        differences = [_difference(of, against, k, pair, loaded) for k in ks]
        tested += [*differences, *([_greedy(of, against, pair)] if experiment.greedy else [])]
        losses.append(_loss_difference(of, against, pair, loaded))
    adjusted = _adjusted(tested, experiment.confidence)
    report = Report(
        name=experiment.name,
        description=experiment.description,
        stage=stage.name,
        problems=len(stage.problems),
        folds=stage.folds,
        seeds=stage.seeds,
        samples=stage.samples,
        confidence=experiment.confidence,
        base_model=loaded.recipe.base_model,
        metadata=experiment.metadata if experiment.uses_metadata else "none",
        not_measured=tuple(k for k in experiment.k if k > stage.samples),
        variants=tuple(_figures(variant, by, ks, stage) for variant, by in by_variant.items()),
        differences=tuple(one for one in adjusted if isinstance(one, Difference)),
        greedy=tuple(one for one in adjusted if isinstance(one, Greedy)),
        losses=tuple(losses),
        training=_training(training),
        settings=loaded.identity,
    )
    return conclusion.concluded(report)


def _by(scored: Sequence[Scored], variant: Variant) -> By:
    found: dict[str, dict[int, Scored]] = {}
    for one in scored:
        if one.variant == variant:
            found.setdefault(one.problem, {})[one.seed] = one
    return found


def _figures(variant: Variant, by: By, ks: Sequence[int], stage: Stage) -> Figures:
    every = [one for seeds in by.values() for one in seeds.values()]
    by_seed = {
        seed: fmean(pass_at_k(seeds[seed].programs, seeds[seed].passed, 1) for seeds in by.values())
        for seed in stage.seeds
    }
    curve = tuple(
        (k, fmean(_pass_at(seeds, k) for seeds in by.values())) for k in range(1, stage.samples + 1)
    )
    return Figures(
        variant=str(variant),
        label=variant.label,
        pass_at={k: curve[k - 1][1] for k in ks},
        by_seed=by_seed,
        seed_deviation=standard_deviation(list(by_seed.values())),
        greedy=_mean([_majority(seeds) for seeds in by.values()]),
        bits_per_byte=_bits_per_byte(every),
        truncated=sum(one.truncated for one in every) / sum(one.programs for one in every),
        curve=curve,
    )


def _difference(of: Variant, against: Variant, k: int, pair: tuple[By, By], loaded: Loaded) -> Difference:
    experiment = loaded.experiment
    first, second = pair
    differences = [_pass_at(first[name], k) - _pass_at(second[name], k) for name in first]
    resamples = experiment.resamples
    low, high = bootstrap_interval(differences, confidence=experiment.confidence, resamples=resamples)
    by_seed = {
        seed: fmean(
            _one_pass_at(first[name][seed], k) - _one_pass_at(second[name][seed], k) for name in first
        )
        for seed in next(iter(first.values()))
    }
    return Difference(
        of=str(of),
        against=str(against),
        k=k,
        difference=fmean(differences),
        low=low,
        high=high,
        p=sign_flip_p(differences, resamples=resamples),
        p_adjusted=math.nan,
        shown=False,
        detectable=DETECTABLE * (standard_deviation(differences) or 0.0) / math.sqrt(len(differences)),
        by_seed=by_seed,
        seed_deviation=standard_deviation(list(by_seed.values())),
    )


def _greedy(of: Variant, against: Variant, pair: tuple[By, By]) -> Greedy:
    first, second = pair
    passes = [(bool(_majority(first[name])), bool(_majority(second[name]))) for name in first]
    only_of, only_against = passes.count((True, False)), passes.count((False, True))
    p = mcnemar_exact(only_of, only_against)
    return Greedy(str(of), str(against), only_of, only_against, p, math.nan, shown=False)


def _loss_difference(of: Variant, against: Variant, pair: tuple[By, By], loaded: Loaded) -> LossDifference:
    """Each problem's mean over seeds, in bits over its share of the bytes: their mean is the difference."""
    first, second = pair
    size = fmean(next(iter(seeds.values())).bytes for seeds in first.values())
    bits = [(_nats(first[name]) - _nats(second[name])) / math.log(2) / size for name in first]
    experiment = loaded.experiment
    low, high = bootstrap_interval(bits, confidence=experiment.confidence, resamples=experiment.resamples)
    return LossDifference(str(of), str(against), fmean(bits), low, high)


def _adjusted(tested: Sequence[Difference | Greedy], confidence: float) -> list[Difference | Greedy]:
    """With Holm's p over all of them together."""
    adjusted = holm([one.p for one in tested])
    return [
        replace(one, p_adjusted=p, shown=p <= 1 - confidence) for one, p in zip(tested, adjusted, strict=True)
    ]


def _pass_at(seeds: Mapping[int, Scored], k: int) -> float:
    return fmean(_one_pass_at(one, k) for one in seeds.values())


def _one_pass_at(one: Scored, k: int) -> float:
    return pass_at_k(one.programs, one.passed, k)


def _nats(seeds: Mapping[int, Scored]) -> float:
    return fmean(one.nats for one in seeds.values())


def _majority(seeds: Mapping[int, Scored]) -> bool | None:
    """Whether more than half of the seeds' greedy programs pass; None where there are none."""
    passed = [one.greedy for one in seeds.values() if one.greedy is not None]
    return sum(passed) > len(passed) / 2 if passed else None


def _mean(flags: Sequence[bool | None]) -> float | None:
    known = [float(flag) for flag in flags if flag is not None]
    return fmean(known) if known else None


def _bits_per_byte(every: Sequence[Scored]) -> float:
    return sum(one.nats for one in every) / math.log(2) / sum(one.bytes for one in every)


def _training(training: Sequence[Json]) -> Json:
    """Over the trainings: how many, how long, and the mean of their losses."""
    trained = [one for one in training if one["steps"]]
    if not trained:
        return {"trainings": 0}
    return {
        "trainings": len(trained),
        "steps": fmean(one["steps"] for one in trained),
        "seconds": sum(one["seconds"] for one in trained),
        "train_loss": fmean(one["train_loss"] for one in trained),
        "eval_loss": fmean(one["eval_loss"] for one in trained),
    }
