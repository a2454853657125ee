"""What a verdict says to a person."""

import math
from typing import TYPE_CHECKING

from services.trainer.gate.evidence import Rule, Verdict

if TYPE_CHECKING:
    from services.trainer.gate.decision import General


def code(measured: Verdict, rule: Rule, *, better: bool) -> str:
    """Whether, and how surely, the candidate is better on this code."""
    share = f"{abs(measured.improvement):.2%}"
    interval = (
        f"{_percent(1 - 2 * measured.level)} interval {measured.low:+.2%} to {measured.high:+.2%},"
        f" {measured.held_out_files} held-out files"
    )
    if better:
        return f"{share} fewer bits per byte than the {measured.against} ({interval})"
    if measured.low > 0:
        return (
            f"{share} better than the {measured.against}, but not beyond noise by the"
            f" {rule.min_improvement:.2%} that the recipe wants ({interval})"
        )
    direction = "better" if measured.improvement > 0 else "worse"
    said = f"not better than the {measured.against} beyond noise: {share} {direction} ({interval})"
    if measured.improvement > 0 and not measured.detectable <= rule.expected_improvement:
        said += f"; {too_small(measured, rule)}"
    return said


def general(found: "General", *, kept: bool) -> str:
    """Whether, and how surely, the candidate is no worse elsewhere."""
    unit = " points" if found.metric == "rate" else "%"
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
    expected = f"the {rule.expected_improvement:.2%} that the recipe expects"
    if measured.files_needed is None:
        return f"no held-out set could show {expected}: it is not above its min_improvement"
    return (
        f"{measured.held_out_files} files show {measured.detectable:.2%} in 8 rounds of 10; to show"
        f" {expected} takes about {measured.files_needed}"
    )


def too_few(files: int, needed: int) -> str:
    return f"{files} held-out files are too few to decide by, {needed} are needed: add more code"


def too_few_groups(files: int, groups: int, needed: int) -> str:
    return (
        f"{files} held-out files of only {groups} independent groups are too few to decide by, {needed}"
        " groups are needed: add more code"
    )


def not_measured(suite: str) -> str:
    return (
        f"the recipe's general_suite, {suite}, was not measured: nothing shows that the candidate is no worse"
        " elsewhere"
    )


def _percent(share: float) -> str:
    """Two digits of what it is away from 0 % or, beyond 90 %, from 100 %; three below that."""
    if not 0.9 <= share < 1:
        return f"{100 * share:.3g}%"
    digits = 1 - math.floor(math.log10(100 * (1 - share)))
    return f"{round(100 * share, digits):.10g}%"
