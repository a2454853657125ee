"""What a verdict says to a person."""

import math
from typing import TYPE_CHECKING

from services.trainer.gate.evidence import Metric, Rule, Verdict

if TYPE_CHECKING:
    from services.trainer.gate.decision import General

ITEM = {"nats": "file", "rate": "task"}
UNIT = {"nats": "%", "rate": " points"}
MORE_TASKS = "name a task set with more of them (eval_tasks)"


def here(measured: Verdict, rule: Rule, *, better: bool) -> str:
    """Whether, and how surely, the candidate is better on this code, or at the held-out tasks."""
    metric, against = measured.metric, measured.against
    share = _amount(abs(measured.improvement), metric)
    interval = (
        f"{_percent(1 - 2 * measured.level)} interval {_signed(measured.low, metric)} to"
        f" {_signed(measured.high, metric)}, {_held_out(measured)}"
    )
    if better:
        what = "more of the held-out tasks solved" if metric == "rate" else "fewer bits per byte"
        return f"{share} {what} than {'by ' if metric == 'rate' else ''}the {against} ({interval})"
    if measured.low > 0:
        return (
            f"{share} better than the {against}, but not beyond noise by the"
            f" {_amount(rule.min_improvement, metric)} that the recipe wants ({interval})"
        )
    direction = "better" if measured.improvement > 0 else "worse"
    change = f"{share} {direction}" if measured.improvement else "as good"
    said = f"not better than the {measured.against} beyond noise: {change} ({interval})"
    if measured.improvement > 0 and not measured.detectable <= rule.expected_improvement:
        said += f"; {too_small(measured, rule)}"
    return said


def general(found: "General", *, kept: bool) -> str:
    """Whether, and how surely, the candidate is no worse elsewhere."""
    unit = UNIT[found.metric]
    change = f"{found.suite} {100 * found.change:+.2f}{unit} against the {found.against}"
    bound = f"at worst {100 * found.low:+.2f}{unit}"
    if kept:
        return f"no worse elsewhere: {change}, {bound}"
    allowed = f"the recipe allows -{100 * found.margin:.2f}{unit}"
    if found.change <= -found.margin:
        return f"worse elsewhere: {change}, {allowed} ({found.items} items)"
    said = f"not shown to be no worse elsewhere: {change}, {bound}, {allowed}"
    if found.items_needed is None or found.items_needed <= found.items:
        return f"{said} ({found.items} items)"
    return f"{said} ({found.items} items; about {found.items_needed} would show so little)"


def look(number: int, level: float) -> str:
    """What earlier verdicts of the track cost this one."""
    return f"verdict {number} of the track: it may be wrong with probability {_percent(level)}"


def too_small(measured: Verdict, rule: Rule) -> str:
    """That the improvement the recipe expects would often not be seen."""
    expected = f"the {_amount(rule.expected_improvement, measured.metric)} that the recipe expects"
    if measured.needed is None:
        return f"no held-out set could show {expected}: it is not above its min_improvement"
    return (
        f"{measured.held_out} {ITEM[measured.metric]}s show {_amount(measured.detectable, measured.metric)}"
        f" in 8 rounds of 10; to show {expected} takes about {measured.needed}"
    )


def too_few(items: int, needed: int, metric: Metric) -> str:
    if metric == "rate":
        return f"{items} held-out tasks are too few to decide by, {needed} are needed: {MORE_TASKS}"
    return f"{items} held-out files are too few to decide by, {needed} are needed: add more code"


def too_few_groups(items: int, groups: int, needed: int, metric: Metric) -> str:
    what, cure = ("tasks", MORE_TASKS) if metric == "rate" else ("files", "add more code")
    return (
        f"{items} held-out {what} of only {groups} independent groups are too few to decide by, {needed}"
        f" groups are needed: {cure}"
    )


def not_sound(metric: Metric) -> str:
    """Of figures on what the track is for."""
    if metric == "rate":
        return "a pass rate of the held-out tasks is not between 0 and 1: they were not measured soundly"
    return "the held-out loss is not finite: the training diverged"


def not_measured(suite: str) -> str:
    return (
        f"the recipe's general_suite, {suite}, was not measured: nothing shows that the candidate is no worse"
        " elsewhere"
    )


def _held_out(measured: Verdict) -> str:
    return f"{measured.held_out} held-out {ITEM[measured.metric]}s"


def _amount(share: float, metric: Metric) -> str:
    return f"{100 * share:.2f}{UNIT[metric]}"


def _signed(share: float, metric: Metric) -> str:
    return f"{100 * share:+.2f}{UNIT[metric]}"


def _percent(share: float) -> str:
    """Two digits of what it is away from 0 % or, beyond 90 %, from 100 %; three below that."""
    if not 0.9 <= share < 1:
        return f"{100 * share:.3g}%"
    digits = 1 - math.floor(math.log10(100 * (1 - share)))
    return f"{round(100 * share, digits):.10g}%"
