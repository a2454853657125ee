"""`ratchet gate simulate`: how often the gate would be wrong, and how often it sees what it should."""

import json
import math
import sys
import time
from dataclasses import asdict, replace

from rich.console import Console
from rich.table import Table

from services.cli.environment import Environment
from services.core.models import Json
from services.trainer.gate import Rule
from services.trainer.gate.simulation import Characteristics, simulate
from services.trainer.gate.worlds import Files, Tasks
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe

SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)  # rounds of the table
TARGET = 0.8  # power


def run(
    environment: Environment,
    name: str | None,
    *,
    rounds: int,
    tracks: int,
    world: Json,
    effect: float | None,
    as_json: bool,
) -> None:
    """Print the operating characteristics of the recipe's gate. `world` replaces what is assumed.

    A recipe of reinforcement is judged by tasks, any other by files of code.
    """
    settings = environment.settings
    recipe = recipe_files.load(name or settings.recipe, settings.recipe_overrides)
    rule = rule_of(recipe)
    given = {field: value for field, value in world.items() if value is not None}
    assumed = replace(world_of(recipe), **given)
    began = time.perf_counter()
    found = simulate(rule, assumed, tracks=tracks, rounds=rounds, effect=effect, on_track=_show)
    answer = {
        "recipe": recipe.name,
        "tracks": tracks,
        "rounds": rounds,
        "effect": rule.expected_improvement if effect is None else effect,
        "confidence": rule.confidence,
        "min_improvement": rule.min_improvement,
        **{key: _finite(value) for key, value in asdict(found).items()},
        "judged_by": "tasks" if assumed.metric == "rate" else "files",
        "assumed": asdict(assumed),
        "seconds": round(time.perf_counter() - began, 1),
    }
    if as_json:
        print(json.dumps(answer))
        return
    console = Console()
    console.print(table(found))
    console.print(summary(answer), highlight=False)


def world_of(recipe: Recipe) -> Files | Tasks:
    """What is assumed of what the recipe's rounds are judged by."""
    if recipe.reinforcement is not None:
        return Tasks(samples=recipe.reinforcement.eval_samples)
    return Files(items=recipe.held_out_min)


def rule_of(recipe: Recipe) -> Rule:
    """The recipe's part of a decision."""
    names = (
        "min_improvement",
        "confidence",
        "expected_improvement",
        "general_suite",
        "general_margin",
        "seed",
    )
    return Rule(**{name: getattr(recipe, name) for name in names})


def table(found: Characteristics) -> Table:
    made = Table("", "share", box=None)
    made.columns[1].justify = "right"
    by_round = found.false_promotion_by_round
    for rounds in sorted({each for each in SHOWN if each < len(by_round)} | {len(by_round)}):
        label = f"tracks without effect, promoted within {rounds} round{'s' if rounds > 1 else ''}"
        made.add_row(label, f"{by_round[rounds - 1]:.1%}")
    made.add_row("first rounds with the expected improvement, promoted", f"{found.power:.1%}")
    if math.isfinite(found.power_later):
        made.add_row("later rounds with it, promoted", f"{found.power_later:.1%}")
    made.add_row(
        "first rounds with it, but worse elsewhere by twice the margin, promoted", f"{found.harm:.1%}"
    )
    return made


def summary(answer: Json) -> str:
    """What was simulated, and whether the files are enough."""
    assumed, what = answer["assumed"], answer["judged_by"]
    effect = f"{100 * answer['effect']:.1f}{' points' if what == 'tasks' else '%'}"
    enough = "" if answer["power"] >= TARGET else f" Too few {what} to see {effect} reliably."
    return (
        f"{answer['tracks']:,} tracks of {answer['rounds']} rounds, {assumed['items']} held-out {what},"
        f" {_assumed(what, assumed)}: assumed, not measured."
        f" Expected improvement {effect}, {answer['seconds']:.0f} s.{enough}"
    )


def _assumed(what: str, assumed: Json) -> str:
    if what == "files":
        return f"improvements that vary between files by {assumed['spread']:.1%}"
    return (
        f"each tried {assumed['samples']} times, {assumed['pass_rate']:.0%} solved before, log-odds that vary"
        f" between tasks by {assumed['spread']:.2f}"
    )


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show(done: int, of: int) -> None:
    """Progress, where somebody looks."""
    if sys.stderr.isatty() and done % 20 == 0:
        sys.stderr.write(f"\rtrack {done}/{of} ")
        if done == of:
            sys.stderr.write("\r\033[K")
