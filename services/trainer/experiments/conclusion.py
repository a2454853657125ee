"""What an experiment comes to, in words: what was shown, what could not be, and what to be wary of. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from services.trainer.experiments.experiment import DERIVED
from services.trainer.experiments.findings import Difference, Greedy, Report

MANY_TRUNCATED = 0.05  # share of programs
FEW_PROBLEMS = 100


def concluded(report: Report) -> Report:
    """The report with its conclusions and cautions."""
    if report.is_check:
        check = f"A check of the plumbing with {report.problems} problems: its figures mean nothing."
        return replace(report, conclusions=(check,))
    said = tuple(
        line for one in report.differences if one.k == report.differences[0].k for line in _of(one, report)
    )
    return replace(report, conclusions=said, cautions=tuple(_cautions(report)))


def points(value: float) -> str:
    """A difference of shares in points, with its sign: 0.042 is +4.2."""
    return f"{100 * value:+.1f}"


def p_value(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"


def named(variant: str, report: Report) -> str:
    return next(one.label for one in report.variants if one.variant == variant)


def _of(one: Difference, report: Report) -> Iterator[str]:
    """On two variants: first the smallest k, then what greedy programs and other k say otherwise."""
    of, against = named(one.of, report), named(one.against, report)
    figures = (
        f"{points(one.difference)} points of pass@{one.k} ({report.confidence:.0%} interval"
        f" {points(one.low)} to {points(one.high)}, p {p_value(one.p)}, adjusted {p_value(one.p_adjusted)})"
    )
    if one.shown:
        yield f"{of} is {'better' if one.difference > 0 else 'worse'} than {against}: {figures}."
    elif flat := _flat(one, report):
        yield f"No difference could be shown between {of} and {against}: {flat}."
    else:
        yield (
            f"No difference could be shown between {of} and {against}: {figures}."
            f" About {100 * one.detectable:.1f} points are needed to see one in 8 of 10 such experiments."
        )
    others = [
        two
        for two in report.differences
        if (two.of, two.against) == (one.of, one.against) and two.k != one.k and two.shown != one.shown
    ]
    for two in others:
        shown = "a difference was shown" if two.shown else "no difference could be shown"
        yield (
            f"At pass@{two.k} {shown} between them: {points(two.difference)} points, adjusted p"
            f" {p_value(two.p_adjusted)}."
        )
    for greedy in report.greedy:
        if (greedy.of, greedy.against) == (one.of, one.against):
            yield _mcnemar(greedy, of, against)
    yield from _loss(report, one)


def _flat(one: Difference, report: Report) -> str | None:
    """Why nothing could be told where all programs pass, or none; None where something could."""
    passed = {each.pass_at[one.k] for each in report.variants if each.variant in (one.of, one.against)}
    if passed == {0.0}:
        return "no program of either passed, so these problems are too hard to tell them apart"
    return (
        "every program of both passed, so these problems are too easy to tell them apart"
        if passed == {1.0}
        else None
    )


def _loss(report: Report, one: Difference) -> Iterator[str]:
    for loss in report.losses:
        if (loss.of, loss.against) == (one.of, one.against):
            yield (
                f"Unseen solutions cost {named(one.of, report)} {abs(loss.difference):.4f} bits per byte"
                f" {'less' if loss.difference < 0 else 'more'} than {named(one.against, report)}"
                f" ({report.confidence:.0%} interval {loss.low:+.4f} to {loss.high:+.4f}, no test)."
            )


def _mcnemar(one: Greedy, of: str, against: str) -> str:
    verdict = "a difference is shown" if one.shown else "no difference could be shown"
    return (
        f"Greedy programs: {one.only_of} problems only {of} solves, {one.only_against} only {against};"
        f" {verdict} (McNemar's exact p {p_value(one.p)}, adjusted {p_value(one.p_adjusted)})."
    )


def _cautions(report: Report) -> Iterator[str]:
    yield (
        f"Intervals and tests are over {report.problems} problems. They do not cover the choice of seeds, of"
        f" which there are {len(report.seeds)}: the differences by seed stand beside them."
    )
    first_k = min(one.k for one in report.differences)
    for one in report.differences:
        values = list(one.by_seed.values())
        if one.k == first_k and min(values) < 0 < max(values):
            yield (
                f"The seeds disagree on {named(one.of, report)} against {named(one.against, report)}:"
                f" {', '.join(map(points, values))} points of pass@{one.k}."
            )
    for k in report.not_measured:
        yield f"pass@{k} needs {k} programs a problem and training; there are {report.samples}: not measured."
    if report.metadata == DERIVED:
        yield (
            "The metadata is guessed from the syntax of the problems' solutions. Prompts with it tell the"
            " model something of the answer, which nobody has when code is to be written: a gain of these"
            " prompts is one of the hint until the other variants say otherwise."
        )
    elif report.metadata != "none":
        yield (
            "Metadata that was made with the solution at hand tells a prompt something of the answer: a gain"
            " of prompts with it is one of the hint until the other variants say otherwise."
        )
    if report.problems < FEW_PROBLEMS:
        yield f"{report.problems} problems are few: only large differences can be shown."
    for variant in report.variants:
        if variant.truncated > MANY_TRUNCATED:
            yield (
                f"{variant.truncated:.0%} of the programs of {variant.label} were cut off by max_new_tokens."
            )
