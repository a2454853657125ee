"""The gate's decision: promote only what is better here and no worse elsewhere, beyond doubt.

Here is what the track is for: held-out code, by bits per byte, or held-out tasks, by their pass rates.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from services.trainer.gate import planted, words
from services.trainer.gate.bootstrap import Bounds, bounds
from services.trainer.gate.evidence import (
    Check,
    Evidence,
    GeneralEvidence,
    Metric,
    Paired,
    PlantedSecret,
    Rule,
    Verdict,
)
from services.trainer.gate.spending import level

MIN_ITEMS = 5  # held-out contents or tasks, and groups of them, below which no interval means anything


@dataclass(frozen=True)
class General:
    """How ability elsewhere has changed; below 0 is worse, in points of a rate or relative nats."""

    suite: str
    metric: str
    against: str
    items: int
    change: float
    low: float
    margin: float
    items_needed: int | None  # that would show no change to be within the margin in 8 rounds of 10


def decide(evidence: Evidence, rule: Rule) -> Verdict:
    """A verdict with its reasons; pure, and the same for the same figures in whatever order.

    Promotes when both hold, each shown at the level that the track's history leaves (`spending.level`), and
    when none of the secrets planted in the round can be written out (`planted.check`):

    - here, the lower bound of the relative fall of bits per byte, or of the rise of the pass rate in points,
      is above `min_improvement`;
    - elsewhere, if the recipe names a suite, the lower bound of the change is above -`general_margin`.

    A promotion that is wrong in either way has passed a test of that level, so its probability is no
    higher (intersection-union: Berger, Technometrics 24, 1982). What cannot be measured refuses: losses
    that are not finite, too few files, a suite without results.
    """
    if (problem := _problem(evidence, rule)) is not None:
        return replace(_sized(refuse(problem, evidence.against), evidence), notes=evidence.notes)
    look, alpha = evidence.history.look, level(evidence.history, 1 - rule.confidence)
    here = _bounds(evidence.here, evidence.metric, alpha, rule.seed, evidence.step)
    per_item = len(evidence.here) / here.groups
    needed = here.groups_for(rule.expected_improvement - rule.min_improvement)
    unjudged = Verdict(
        promoted=False,
        reason="",
        against=evidence.against,
        improvement=here.estimate,
        low=here.low,
        high=here.high,
        level=alpha,
        look=look,
        detectable=rule.min_improvement + here.detectable,
        notes=(*evidence.notes, words.look(look, alpha)),
    )
    measured = _sized(unjudged, evidence, None if needed is None else math.ceil(needed * per_item))
    return _judged(measured, _general(evidence, rule, alpha), rule, evidence.planted)


def refuse(reason: str, against: str) -> Verdict:
    """A refusal without a measurement: its figures are NaN, which the ledger stores as null."""
    nothing = math.nan
    checks = (Check("measured", False, reason),)
    return Verdict(False, reason, against, nothing, nothing, nothing, checks=checks)


def too_few(items: int, groups: int, metric: Metric = "nats") -> str | None:
    """Why so many files or tasks, in so many groups, cannot be decided by; None when they can."""
    if items < MIN_ITEMS:
        return words.too_few(items, MIN_ITEMS, metric)
    return words.too_few_groups(items, groups, MIN_ITEMS, metric) if groups < MIN_ITEMS else None


def _sized(verdict: Verdict, evidence: Evidence, needed: int | None = None) -> Verdict:
    """With how much it was judged by, and how much would show the expected improvement."""
    items = len(evidence.here)
    if evidence.metric == "rate":
        return replace(verdict, metric="rate", held_out_tasks=items, tasks_needed=needed)
    size = round(sum(item.weight for item in evidence.here if math.isfinite(item.weight)))
    return replace(verdict, held_out_files=items, held_out_bytes=size, files_needed=needed)


def _judged(
    measured: Verdict, general: General | None, rule: Rule, secrets: Sequence[PlantedSecret]
) -> Verdict:
    """The verdict with its checks, the sentence they make, and what a reader should know."""
    better = measured.low > rule.min_improvement
    name: Literal["code", "tasks"] = "tasks" if measured.metric == "rate" else "code"
    checks = [Check(name, better, words.here(measured, rule, better=better))]
    notes = measured.notes
    if not measured.detectable <= rule.expected_improvement:
        notes = (*notes, words.too_small(measured, rule))
    if general is not None:
        kept = general.low > -general.margin
        checks.append(Check("general", kept, words.general(general, kept=kept)))
    if (nothing_given_up := planted.check(secrets)) is not None:
        checks.append(nothing_given_up)
    if (trace := planted.note(secrets)) is not None:
        notes = (*notes, trace)
    promoted = all(check.passed for check in checks)
    said = [check.words for check in checks if promoted or not check.passed]
    return replace(
        measured,
        promoted=promoted,
        reason="; ".join(said),
        general=None if general is None else asdict(general),
        planted=planted.figures(secrets) if secrets else None,
        checks=tuple(checks),
        notes=notes,
    )


def _general(evidence: Evidence, rule: Rule, alpha: float) -> General | None:
    found = evidence.general
    if rule.general_suite is None or found is None:
        return None
    change = _bounds(found.items, found.metric, alpha, rule.seed)
    needed = replace(change, estimate=0.0).groups_for(rule.general_margin)
    return General(
        suite=found.suite,
        metric=found.metric,
        against=found.against,
        items=len(found.items),
        change=change.estimate,
        low=change.low,
        margin=rule.general_margin,
        items_needed=needed,
    )


def _bounds(items: Sequence[Paired], metric: Metric, alpha: float, seed: int, step: float = 1.0) -> Bounds:
    """Of how much better the items are: above 0 is better. step: as `Evidence` has it."""
    if metric == "nats":
        return bounds(_by_group(items, _fall), alpha, seed)
    # Rates are discrete: as if half an item more had been better by a step and half an item worse (Agresti
    # and Min, "Simple improved confidence intervals for comparing matched proportions", 2005).
    least = (step / (len(items) + 2)) ** 2
    return bounds(_by_group(items, _rise), alpha, seed, least_variance=least)


def _fall(item: Paired) -> tuple[float, float]:
    """Of nats: relative to what they were, so that items count by their loss."""
    return item.before - item.after, item.before


def _rise(item: Paired) -> tuple[float, float]:
    """Of a rate: in points, so that items count by their weight."""
    return item.weight * (item.after - item.before), item.weight


def _by_group(
    items: Sequence[Paired], terms: Callable[[Paired], tuple[float, float]]
) -> list[tuple[float, float]]:
    """The terms summed within each group, exactly: the order of the items does not show."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(terms(item))
    return [
        each[0] if len(each) == 1 else (math.fsum(above for above, _ in each), math.fsum(b for _, b in each))
        for each in groups.values()
    ]


def _problem(evidence: Evidence, rule: Rule) -> str | None:
    """Why these figures cannot be judged, or None."""
    if not _sound(evidence.here, evidence.metric):
        return words.not_sound(evidence.metric)
    if (why := too_few(len(evidence.here), _groups(evidence.here), evidence.metric)) is not None:
        return why
    return None if rule.general_suite is None else _problem_elsewhere(evidence.general, rule.general_suite)


def _problem_elsewhere(found: GeneralEvidence | None, wanted: str) -> str | None:
    if found is None or found.suite != wanted:
        return words.not_measured(wanted)
    if not _sound(found.items, found.metric):
        return f"the result on {wanted} is not finite: the training diverged"
    if _groups(found.items) < MIN_ITEMS:
        return f"{wanted} has {len(found.items)} items, too few to decide by: {MIN_ITEMS} are needed"
    return None


def _sound(items: Sequence[Paired], metric: Metric) -> bool:
    most = 1.0 if metric == "rate" else sys.float_info.max
    return all(
        0 <= item.before <= most and 0 <= item.after <= most and 0 < item.weight < math.inf for item in items
    )


def _groups(items: Sequence[Paired]) -> int:
    return len({item.group for item in items})
