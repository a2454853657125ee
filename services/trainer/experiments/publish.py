"""A report as files: JSON, Markdown with pictures beside it, and one HTML page that needs nothing else."""

import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from services.trainer.experiments import chart, store
from services.trainer.experiments.conclusion import p_value, points
from services.trainer.experiments.findings import Report

JSON, MARKDOWN, HTML = "report.json", "report.md", "report.html"
CURVES, DIFFERENCES = "pass-at-k.svg", "differences.svg"
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]  # title, head, rows
METHOD = (
    "pass@k is the unbiased estimate of Chen et al. 2021, of each seed, then averaged. A problem's difference"
    " is that of its means over seeds. Intervals: percentile bootstrap over problems; p: flips of the"
    " differences' signs; greedy programs: McNemar's exact test on what most seeds pass. Adjusted: Holm's,"
    " over all tests of this report together."
)
STYLE = """\
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }
th, td { padding: .25rem .75rem; border-bottom: 1px solid #8886; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
svg { max-width: 100%; height: auto; display: block; margin: 1rem 0 }
.conclusion { font-size: 1.1rem; border-left: .3rem solid #0072b2; padding-left: 1rem }
"""


def publish(report: Report, folder: Path) -> None:
    """Write all of it into the folder, each file whole or not at all."""
    pictures = {CURVES: chart.curves(report), DIFFERENCES: chart.differences(report)}
    store.write(folder / JSON, finite(report.as_json()))
    for name, picture in pictures.items():
        store.write_text(folder / name, picture)
    store.write_text(folder / MARKDOWN, markdown(report))
    store.write_text(folder / HTML, html(report, list(pictures.values())))


def finite(value: Any) -> Any:
    """The same in strict JSON: what is not finite is null."""
    if isinstance(value, dict):
        return {str(name): finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def markdown(report: Report) -> str:
    parts = [f"# {report.name}", report.description, *(f"**{line}**" for line in report.conclusions)]
    for title, head, rows in tables(report):
        parts += [f"## {title}", _markdown_table(head, rows)]
        if title.startswith("Scores"):
            parts.append(f"![pass@k of each variant]({CURVES})")
        if title.startswith("Differences"):
            parts.append(f"![differences with their intervals]({DIFFERENCES})")
    if report.cautions:
        parts += ["## To be wary of", "\n".join(f"- {line}" for line in report.cautions)]
    parts += ["## How it was done", *how(report)]
    return "\n\n".join(filter(None, parts)) + "\n"


def html(report: Report, pictures: Sequence[str]) -> str:
    """A page that stands by itself: styles and pictures are in it, nothing is fetched."""
    body = [f"<h1>{escape(report.name)}</h1>", f"<p>{escape(report.description)}</p>"]
    body += [f'<p class="conclusion">{escape(line)}</p>' for line in report.conclusions]
    waiting = list(pictures)
    for title, head, rows in tables(report):
        body += [f"<h2>{escape(title)}</h2>", _html_table(head, rows)]
        if title.startswith(("Scores", "Differences")):
            body.append(waiting.pop(0))
    if report.cautions:
        listed = "".join(f"<li>{escape(line)}</li>" for line in report.cautions)
        body.append(f"<h2>To be wary of</h2><ul>{listed}</ul>")
    body.append("<h2>How it was done</h2>")
    body += [f"<p>{escape(line)}</p>" for line in how(report)]
    settings = json.dumps(finite(report.settings), indent=1)
    body.append(f"<details><summary>Settings</summary><pre>{escape(settings)}</pre></details>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.name)}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def tables(report: Report) -> list[Table]:
    """Scores, differences, greedy programs, losses: all figures as texts."""
    found: list[Table] = [_scores(report), _differences(report)]
    if report.greedy:
        head = ("of − against", "only the first", "only the second", "McNemar p", "adjusted", "shown")
        rows = [
            (
                f"{one.of} − {one.against}", str(one.only_of), str(one.only_against), p_value(one.p),
                p_value(one.p_adjusted), _yes(one.shown),
            )
            for one in report.greedy
        ]  # fmt: skip
        found.append(("Greedy programs: problems that one of two solves", head, rows))
    of_losses = ("of − against", "bits per byte", "low", "high")
    losses = [
        (f"{one.of} − {one.against}", f"{one.difference:+.4f}", f"{one.low:+.4f}", f"{one.high:+.4f}")
        for one in report.losses
    ]
    found.append(("Loss of unseen solutions: less is better, no test", of_losses, losses))
    return found


def how(report: Report) -> list[str]:
    """The method in a few sentences."""
    training = report.training
    trained = f"{training['trainings']} trainings" if training["trainings"] else "no training"
    if training["trainings"]:
        trained += f" of {training['steps']:.0f} steps on average, {training['seconds']:,.0f} s in all"
    run = (
        f"{report.base_model}; {report.problems} problems in {report.folds} folds: each is scored by"
        f" trainings on the other folds' solutions alone, with the loss on the solution. {trained}."
        f" Seeds {', '.join(map(str, report.seeds))}; {report.samples} programs a problem, seed and variant,"
        " run in the sandbox."
    )
    return [run, METHOD]


def _scores(report: Report) -> Table:
    ks = [k for k, _ in report.variants[0].pass_at.items()]
    head = (
        "variant", *(f"pass@{k}" for k in ks), "by seed (pass@1)", "deviation", "greedy", "bits per byte",
        "cut off",
    )  # fmt: skip
    rows = [
        (
            one.label,
            *(f"{one.pass_at[k]:.1%}" for k in ks),
            ", ".join(f"{value:.1%}" for value in one.by_seed.values()),
            "" if one.seed_deviation is None else f"{100 * one.seed_deviation:.1f} points",
            "" if one.greedy is None else f"{one.greedy:.1%}",
            f"{one.bits_per_byte:.4f}",
            f"{one.truncated:.0%}",
        )
        for one in report.variants
    ]
    return ("Scores", head, rows)


def _differences(report: Report) -> Table:
    head = ("of − against", "k", "points", "low", "high", "p", "adjusted", "shown", "by seed", "deviation")
    rows = [
        (
            f"{one.of} − {one.against}",
            str(one.k),
            *map(points, (one.difference, one.low, one.high)),
            p_value(one.p),
            p_value(one.p_adjusted),
            _yes(one.shown),
            ", ".join(map(points, one.by_seed.values())),
            "" if one.seed_deviation is None else f"{100 * one.seed_deviation:.1f}",
        )
        for one in report.differences
    ]
    return (f"Differences of pass@k, with {report.confidence:.0%} intervals", head, rows)


def _yes(shown: bool) -> str:
    return "yes" if shown else "no"


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row(one, "td") for one in rows)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>"
