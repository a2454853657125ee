"""From the figures of four arms to a plain recommendation. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from services.trainer.gate import MIN_ITEMS
from services.trainer.gate.evidence import Metric
from services.trainer.verdict.answers import NAMES, Arm, Difference, Figures

Action = Literal["do not train", "use retrieval", "use the adapter", "use both", "add more code first"]
WORTHWHILE = 0.03  # of edit similarity: a gain as large as this would matter


@dataclass(frozen=True)
class Elsewhere:
    """How ability elsewhere changed with the adapter, as the gate measured it; below 0 is worse."""

    suite: str
    metric: Metric
    change: float  # points of a rate as a fraction of 1, or relative nats
    low: float  # at worst, at the gate's level
    margin: float  # how much of a loss the recipe accepts


@dataclass(frozen=True)
class Evidence:
    """All that a recommendation is made from. Differences are of edit similarity."""

    differences: Mapping[tuple[Arm, Arm], Difference]  # how much the first arm is better than the second
    figures: Mapping[Arm, Figures]
    files: int
    training_seconds: float | None  # of all rounds that led to the adapter
    elsewhere: Elsewhere | None  # None: nobody measured


@dataclass(frozen=True)
class Recommendation:
    action: Action
    reasons: tuple[str, ...]  # sentences


def recommend(evidence: Evidence) -> Recommendation:
    """What to do about this code.

    Too few held-out files: nothing. An arm helps when its interval against the base lies above 0.
    None does: do not train. Both together, where they help and beat each that helps alone; the adapter,
    where it beats retrieval or retrieval does not help; otherwise retrieval, which needs no training.
    Whatever is lost elsewhere, and when training has paid for itself, is said with it.
    """
    if evidence.files < MIN_ITEMS:
        reason = (
            f"The completions come from {evidence.files} held-out files: {MIN_ITEMS} at least are needed to"
            " tell a difference from chance."
        )
        return Recommendation("add more code first", (reason,))
    action, reasons = _decided(evidence)
    if action in ("use the adapter", "use both"):
        reasons += _price(evidence, action) + _loss(evidence.elsewhere)
    return Recommendation(action, reasons)


def _decided(evidence: Evidence) -> tuple[Action, tuple[str, ...]]:
    over = evidence.differences

    def beats(arm: Arm, other: Arm) -> bool:
        return over[arm, other].is_better

    def said(arm: Arm, other: Arm) -> str:
        return _said(arm, other, over[arm, other])

    helping = [arm for arm in (Arm.RETRIEVAL, Arm.ADAPTER) if beats(arm, Arm.BASE)]
    if beats(Arm.BOTH, Arm.BASE) and all(beats(Arm.BOTH, arm) for arm in helping):
        alone = [said(Arm.BOTH, arm) for arm in helping] or [
            said(arm, Arm.BASE) for arm in (Arm.RETRIEVAL, Arm.ADAPTER)
        ]
        return "use both", (said(Arm.BOTH, Arm.BASE), *alone)
    if not helping:
        return "do not train", _nothing_helps(evidence)
    if Arm.RETRIEVAL not in helping or (Arm.ADAPTER in helping and beats(Arm.ADAPTER, Arm.RETRIEVAL)):
        return "use the adapter", (said(Arm.ADAPTER, Arm.BASE), said(Arm.ADAPTER, Arm.RETRIEVAL))
    no_training = "Retrieval needs no training: do not train for completions."
    return "use retrieval", (
        said(Arm.RETRIEVAL, Arm.BASE),
        said(Arm.ADAPTER, Arm.RETRIEVAL),
        no_training,
    )


def _nothing_helps(evidence: Evidence) -> tuple[str, ...]:
    against = {arm: evidence.differences[arm, Arm.BASE] for arm in (Arm.RETRIEVAL, Arm.ADAPTER, Arm.BOTH)}
    reasons = [_said(arm, Arm.BASE, against[arm]) for arm in against]
    best = max(against, key=lambda arm: against[arm].high)
    if against[best].high >= WORTHWHILE:
        reasons.append(
            f"Too little was measured to rule out a gain of {_points(against[best].high)} by {NAMES[best]}:"
            " ask again with more --items, or when more files are held out."
        )
    return tuple(reasons)


def _said(arm: Arm, other: Arm, found: Difference) -> str:
    how = "better than" if found.is_better else "worse than" if found.is_worse else "no different from"
    beyond = "" if found.is_better or found.is_worse else " beyond noise"
    return (
        f"{NAMES[arm].capitalize()} is {how} {NAMES[other]}{beyond}: {_points(found.mean)} of edit similarity"
        f" ({_points(found.low)} to {_points(found.high)})."
    )


def _price(evidence: Evidence, action: Action) -> tuple[str, ...]:
    """After how many completions the training has been earned back by shorter prompts than retrieval's."""
    if evidence.training_seconds is None:
        return ()
    adapter, retrieval = (evidence.figures[arm].device_seconds for arm in (Arm.ADAPTER, Arm.RETRIEVAL))
    trained = f"Training took {evidence.training_seconds:,.0f} s of the device"
    if action == "use both":
        return (f"{trained}.",)
    if adapter >= retrieval:
        return (f"{trained}; a completion of the adapter costs no less than one with retrieval.",)
    completions = evidence.training_seconds / (retrieval - adapter)
    return (f"{trained}, which {completions:,.0f} completions without retrieval's longer prompts earn back.",)


def _loss(elsewhere: Elsewhere | None) -> tuple[str, ...]:
    if elsewhere is None:
        return ("Nobody measured whether the adapter is worse elsewhere: its recipe has no general_suite.",)
    unit = " points" if elsewhere.metric == "rate" else " %"
    change, low, margin = (100 * value for value in (elsewhere.change, elsewhere.low, elsewhere.margin))
    how = "worse" if change < 0 else "no worse"
    found = f"Elsewhere it is {how}: {elsewhere.suite} {change:+.2f}{unit}, at worst {low:+.2f}"
    return (f"{found}; the recipe accepts -{margin:.2f}.",)


def _points(value: float) -> str:
    """A share of 1 as points of a hundred."""
    return f"{100 * value:+.1f} points"
