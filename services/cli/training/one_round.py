"""`ratchet round N`: what it trained on, how its loss fell, how it was judged, what was set otherwise."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from services.cli.asking import connection, tracks
from services.cli.environment import Environment
from services.cli.printing.figures import gain, moment, short, took
from services.cli.printing.inert import inert
from services.cli.printing.progress import training
from services.cli.printing.sparkline import sparkline
from services.cli.training import practised
from services.core.db import Transaction
from services.core.errors import ConfigurationError
from services.core.models import Json, RoundState
from services.metrics.document import is_figure, strict_json
from services.metrics.pages import practice
from services.metrics.pages.configuration import differences

POINTS = 240  # of a curve, evenly thinned
DRAWN = 20_000  # contents of a role at most that languages and sources are counted by
SHOWN = 6  # languages, sources
PARTS = {"train": "new", "replay": "replayed", "validation": "for early stopping", "held_out": "held out"}
CURVES = (("train", "loss", "loss"), ("eval", "bits_per_byte", "validation"))  # kind, metric, label


def run(environment: Environment, number: int | None, track: str | None, *, as_json: bool) -> None:
    """Print it. Raises ConfigurationError when the track has no such round."""
    with connection.opened(environment, "ratchet round") as database, database.transaction() as tx:
        told = read(tx, tracks.one(environment, tx, track), number)
    print(strict_json(told) if as_json else "\n".join(lines(told)))


def read(tx: Transaction, track: str, number: int | None) -> Json:
    """Everything of one round, the newest when no number is named."""
    newest = tx.value("cli_newest_round", track=track)
    if newest is None:
        raise ConfigurationError(
            f"{inert(track)} has had no round yet: `ratchet train` says what it waits for"
        )
    row = tx.one("page_round", track=track, number=number or newest)
    if row is None:
        raise ConfigurationError(f"{inert(track)} has no round {number}: its newest is {newest}")
    beat = tx.one("page_beat", track=track) if row.state == RoundState.OPEN else None
    about = {"round_id": row.id}
    curve = tx.all("metrics_curve", points=POINTS, **about)
    return {
        "track": row.track,
        "number": row.number,
        "state": row.state,
        "attempts": row.attempts,
        "opened_at": row.opened_at,
        "closed_at": row.closed_at,
        "continues_from": row.parent,
        "adapter": row.adapter,
        "progress": None if beat is None else {"state": beat.state, "detail": beat.detail},
        "team": [asdict(agent) for agent in practice.team(row.recipe)],
        "practice": practised.tasks(tx.all("api_round_tasks", **about), tx.one("page_practice", **about)),
        "latest": practice.latest(curve),
        "solutions": tx.value("api_solutions", **about),
        "composition": composition(
            {each.role: each.contents for each in tx.all("api_composition", round_id=row.id)},
            tx.all("page_composition", round_id=row.id, most=DRAWN),
        ),
        "training": row.training,
        "curves": curves(curve),
        "verdict": row.verdict,
        "held_out": [each._asdict() for each in tx.all("api_held_out", round_id=row.id)],
        "suites": [each._asdict() for each in tx.all("api_suites", round_id=row.id)],
        "recipe": row.recipe,
        "compared_with": row.before,
        "changed": [] if row.before is None else changes(row.recipe_before, row.recipe),
    }


def composition(roles: Mapping[str, int], drawn: Sequence[Any]) -> Json:
    """Contents by role; languages and sources of what was trained on, estimated from an even draw."""
    of_role: Counter[str] = Counter()
    for row in drawn:
        of_role[row.role] += row.contents
    languages: Counter[str] = Counter()
    sources: Counter[str] = Counter()
    for row in drawn:
        if row.role in ("train", "replay"):
            share = row.contents * roles.get(row.role, 0) / of_role[row.role]
            languages[row.language] += round(share)
            sources[row.source or "not recorded"] += round(share)
    return {
        "contents": {role: roles[role] for role in PARTS if role in roles},
        "languages": dict(languages.most_common()),
        "sources": dict(sources.most_common()),
    }


def curves(rows: Sequence[Any]) -> Json:
    """By kind, train or eval: the steps and each figure that was logged."""
    return {
        kind: [{"step": row.step, **row.metrics} for row in rows if row.kind == kind]
        for kind in ("train", "eval")
    }


def changes(before: Json, after: Json) -> list[Json]:
    """Fields of the recipe that are not as in the round before."""
    return [
        {"field": change.name, "before": change.before, "after": change.after}
        for change in differences(before, after)
    ]


def lines(told: Json) -> Iterator[str]:
    yield f"{inert(told['track'])}, round {told['number']}: {told['state']}"
    yield from _labelled("when", _when(told))
    yield from _labelled("from", f"{inert(told['continues_from'] or 'the base model')}")
    yield from _labelled("adapter", inert(told["adapter"] or _no_adapter(told["state"])))
    if told["progress"] is not None:
        latest = told["latest"] if told["team"] else None
        yield from _labelled("now", inert(training(told["progress"], latest)))
    yield from _practised(told) if told["team"] else _trained(told)
    for kind, metric, label in practised.CURVES if told["team"] else CURVES:
        yield from _curve(label, [point.get(metric) for point in told["curves"][kind]])
    yield from _judged(told)
    yield from _changed(told)


def _practised(told: Json) -> Iterator[str]:
    for label, text in practised.lines(told):
        yield from _labelled(label, text)
    for label, text in practised.training(told["training"] or {}) if told["training"] else ():
        yield from _labelled(label, text)


def _trained(told: Json) -> Iterator[str]:
    yield from _trained_on(told["composition"])
    if told["solutions"]:
        text = f"{told['solutions']:,} programs of reinforcement rounds that passed their tests"
        yield from _labelled("solutions", text)
    if told["training"]:
        yield from _labelled("training", _figures(told["training"]))


def _labelled(label: str, text: str) -> Iterator[str]:
    yield f"  {label:<11}{text}"


def _no_adapter(state: str) -> str:
    return "none yet" if state == RoundState.OPEN else "none was published"


def _when(told: Json) -> str:
    begun, ended = told["opened_at"], told["closed_at"]
    lasted = "" if ended is None else f" to {moment(ended)} UTC, {took(begun, ended)}"
    tries = f", {told['attempts']} attempts" if told["attempts"] > 1 else ""
    return f"{moment(begun)}{lasted or ' UTC'}{tries}"


def _trained_on(made: Json) -> Iterator[str]:
    parts = [f"{count:,} {PARTS[role]}" for role, count in made["contents"].items()]
    yield from _labelled("contents", ", ".join(parts) or "none")
    for label in ("languages", "sources"):
        if made[label]:
            named = list(made[label].items())
            said = [f"{inert(name)} {count:,}" for name, count in named[:SHOWN]]
            more = [f"{len(named) - SHOWN} others"] if len(named) > SHOWN else []
            yield from _labelled(label, ", ".join([*said, *more]))


def _figures(figures: Json) -> str:
    units = {
        "steps": "{} steps",
        "samples": "{} samples",
        "tokens": "{} tokens",
        "tokens_per_s": "{} tokens/s",
    }
    return ", ".join(
        form.format(short(figures[name])) for name, form in units.items() if is_figure(figures.get(name))
    )


def _curve(label: str, values: Sequence[Any]) -> Iterator[str]:
    finite = [value for value in values if is_figure(value)]
    if finite:
        drawn = sparkline([value if is_figure(value) else None for value in values])
        yield from _labelled(label, f"{drawn}  {finite[0]:.3f} → {finite[-1]:.3f}, lowest {min(finite):.3f}")


def _judged(told: Json) -> Iterator[str]:
    bits = [
        f"{row['subject']} {row['bits_per_byte']:.4f}"
        for row in told["held_out"]
        if is_figure(row["bits_per_byte"])
    ]
    if bits:
        files = told["held_out"][0]["files"]
        yield from _labelled("held out", f"{', '.join(bits)} bits per byte of {files:,} files")
    for suite in dict.fromkeys(row["suite"] for row in told["suites"]):
        of_suite = [row for row in told["suites"] if row["suite"] == suite]
        said = [f"{row['subject']} {_scores(row['figures'])}" for row in of_suite]
        yield from _labelled("suite", f"{inert(suite)}: {'; '.join(said)}")
    verdict: Json = told["verdict"] or {}
    for label, text in practised.held_out(verdict):
        yield from _labelled(label, text)
    if not verdict:
        yield from _labelled("verdict", "none yet")
        return
    improvement = verdict.get("improvement")
    gained = f" ({gain(improvement, verdict.get('metric'))})" if is_figure(improvement) else ""
    yield from _labelled("verdict", f"{told['state']}{gained}: {inert(str(verdict.get('reason') or '–'))}")
    for note in verdict.get("notes") or ():
        yield from _labelled("", inert(str(note)))


def _scores(figures: Json) -> str:
    return ", ".join(f"{inert(name)} {value:.4g}" for name, value in figures.items() if is_figure(value))


def _changed(told: Json) -> Iterator[str]:
    if told["compared_with"] is None:
        yield from _labelled("recipe", "the track's first round: there is none to compare with")
    elif not told["changed"]:
        yield from _labelled("recipe", f"as in round {told['compared_with']}")
    for change in told["changed"]:
        said = f"{inert(change['field'])}: {inert(change['after'])} (round {told['compared_with']}:"
        yield from _labelled("recipe", f"{said} {inert(change['before'])})")
