"""What `ratchet round N` says of a round in which a team practises: tasks, agents, figures, verdict."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from services.cli.printing.figures import short
from services.cli.printing.inert import inert
from services.core.models import Json
from services.metrics.document import is_figure

PARTS = {"train": "to practise", "validation": "for early stopping", "held_out": "held out"}
CURVES = (  # kind, metric, label
    ("train", "reward", "reward"),
    ("eval", "solved", "pass rate"),
    ("train", "kl_reference", "KL to base"),
    ("train", "entropy", "entropy"),
    ("train", "value_loss", "value loss"),
)
FIGURES = {
    "steps": "{} iterations",
    "episodes": "{} episodes",
    "tokens": "{} tokens",
    "tokens_per_s": "{} tokens/s",
}
Labelled = tuple[str, str]


def tasks(rows: Sequence[Any], practice: Any) -> Json:
    """From rows of `api_round_tasks` and `page_practice`: how many of which set in which role."""
    roles: Counter[str] = Counter()
    sets: Counter[str] = Counter()
    for row in rows:
        roles[row.role] += row.tasks
        sets[row.task_set] += row.tasks
    return {
        "tasks": {role: roles[role] for role in PARTS if role in roles},
        "sets": dict(sets.most_common()),
        "practised": practice.practised,
        "solved": practice.solved,
        "episodes": practice.episodes,
    }


def lines(told: Json) -> Iterator[Labelled]:
    """Who practised what."""
    agents = [
        f"{inert(each['role'])}{' (writes the program)' if each['answers'] else ''}" for each in told["team"]
    ]
    yield "team", ", ".join(agents)
    made = told["practice"]
    yield "tasks", ", ".join(f"{count:,} {PARTS[role]}" for role, count in made["tasks"].items()) or "none"
    if made["sets"]:
        yield "task sets", ", ".join(f"{inert(name)} {count:,}" for name, count in made["sets"].items())
    if made["practised"]:
        seen = f"{made['practised']:,} tasks in {made['episodes']:,} episodes"
        yield "practised", f"{seen}; {made['solved']:,} solved at least once"


def training(figures: Json) -> Iterator[Labelled]:
    said = [
        form.format(short(figures[name])) for name, form in FIGURES.items() if is_figure(figures.get(name))
    ]
    yield "training", ", ".join(said)
    if figures.get("stopped_why"):
        yield "stopped", inert(str(figures["stopped_why"]))


def held_out(verdict: Json) -> Iterator[Labelled]:
    """What the models solved of the tasks that nobody practised."""
    rates = verdict.get("pass_rates") or {}
    said = [f"{subject} {100 * rate:.1f} %" for subject, rate in rates.items() if is_figure(rate)]
    if said:
        yield "held out", f"{', '.join(said)} of {verdict.get('held_out_tasks') or 0:,} tasks solved"
