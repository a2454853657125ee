"""The gate's decision: promote only what is better on this code and no worse elsewhere, beyond doubt."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from services.trainer.gate import planted, words
from services.trainer.gate.bootstrap import Bounds, bounds
from services.trainer.gate.evidence import (
    Check,
    Evidence,
    GeneralEvidence,
    Paired,
    PlantedSecret,
    Rule,
    Verdict,
)
from services.trainer.gate.spending import level

MIN_ITEMS = 5  # held-out contents, and groups of them, below which no interval means anything


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

    - on this code, the lower bound of the relative fall of bits per byte is above `min_improvement`;
    - elsewhere, if the recipe names a suite, the lower bound of the change is above -`general_margin`.

    A promotion that is wrong in either way has passed a test of that level, so its probability is no
    higher (intersection-union: Berger, Technometrics 24, 1982). What cannot be measured refuses: losses
    that are not finite, too few files, a suite without results.
    """
    size = round(sum(item.weight for item in evidence.code if math.isfinite(item.weight)))
    if (problem := _problem(evidence, rule)) is not None:
        refused = refuse(problem, evidence.against, len(evidence.code), size)
        return replace(refused, notes=evidence.notes)
    look, alpha = evidence.history.look, level(evidence.history, 1 - rule.confidence)
    code = bounds(_by_group(evidence.code, _fall), alpha, rule.seed)
    per_file = len(evidence.code) / code.groups
    needed = code.groups_for(rule.expected_improvement - rule.min_improvement)
    unjudged = Verdict(
        promoted=False,
        reason="",
        against=evidence.against,
        improvement=code.estimate,
        low=code.low,
        high=code.high,
        held_out_files=len(evidence.code),
        held_out_bytes=size,
        level=alpha,
        look=look,
        detectable=rule.min_improvement + code.detectable,
        files_needed=None if needed is None else math.ceil(needed * per_file),
        notes=(*evidence.notes, words.look(look, alpha)),
    )
    general = _general(evidence, rule, alpha)
    return _judged(unjudged, general, rule, evidence.planted)


def refuse(reason: str, against: str, held_out_files: int = 0, held_out_bytes: int = 0) -> Verdict:
    """A refusal without a measurement: its figures are NaN, which the ledger stores as null."""
    nothing = math.nan
    checks = (Check("measured", False, reason),)
    return Verdict(
        False, reason, against, nothing, nothing, nothing, held_out_files, held_out_bytes, checks=checks
    )


def too_few(held_out_files: int, groups: int) -> str | None:
    """Why so many files, in so many groups, cannot be decided by; None when they can."""
    if held_out_files < MIN_ITEMS:
        return words.too_few(held_out_files, MIN_ITEMS)
    return words.too_few_groups(held_out_files, groups, MIN_ITEMS) if groups < MIN_ITEMS else None


def _judged(
    measured: Verdict, general: General | None, rule: Rule, secrets: Sequence[PlantedSecret]
) -> Verdict:
    """The verdict with its checks, the sentence they make, and what a reader should know."""
    better = measured.low > rule.min_improvement
    checks = [Check("code", better, words.code(measured, rule, better=better))]
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
    change = _general_bounds(found, alpha, rule.seed)
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


def _general_bounds(found: GeneralEvidence, alpha: float, seed: int) -> Bounds:
    if found.metric == "nats":
        return bounds(_by_group(found.items, _fall), alpha, seed)
    # Rates are discrete: as if half an item more had been won and half an item lost (Agresti and Min,
    # "Simple improved confidence intervals for comparing matched proportions", 2005).
    least = 1 / (len(found.items) + 2) ** 2
    return bounds(_by_group(found.items, _rise), alpha, seed, least_variance=least)


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
    if not _sound(evidence.code):
        return "the held-out loss is not finite: the training diverged"
    if (why := too_few(len(evidence.code), _groups(evidence.code))) is not None:
        return why
    return None if rule.general_suite is None else _problem_elsewhere(evidence.general, rule.general_suite)


def _problem_elsewhere(found: GeneralEvidence | None, wanted: str) -> str | None:
    if found is None or found.suite != wanted:
        return words.not_measured(wanted)
    if not _sound(found.items):
        return f"the result on {wanted} is not finite: the training diverged"
    if _groups(found.items) < MIN_ITEMS:
        return f"{wanted} has {len(found.items)} items, too few to decide by: {MIN_ITEMS} are needed"
    return None


def _sound(items: Sequence[Paired]) -> bool:
    return all(
        0 <= item.before < math.inf and 0 <= item.after < math.inf and 0 < item.weight < math.inf
        for item in items
    )


def _groups(items: Sequence[Paired]) -> int:
    return len({item.group for item in items})
