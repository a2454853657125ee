"""A round in which a team of agents practises: who they are, where it stands, what they wrote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from services.core.models import Json
from services.metrics.document import is_figure

OBJECTIVE = "reinforcement"  # of a recipe
LATEST = {  # what a team's round says last, by kind: name → figure that was logged
    "train": {"reward": "reward", "solved": "solved", "kl": "kl_reference"},
    "eval": {"passed": "solved"},
}


@dataclass(frozen=True)
class Agent:
    role: str
    prompt: str
    answers: bool  # the programs that are run are its


@dataclass(frozen=True)
class Shown:
    """The episodes that are kept of one iteration."""

    iteration: int
    episodes: tuple[Any, ...]


def is_practice(recipe: Mapping[str, Any]) -> bool:
    return recipe.get("objective") == OBJECTIVE


def team(recipe: Mapping[str, Any]) -> tuple[Agent, ...]:
    """The agents in the order in which they speak; none of a recipe that trains a single model."""
    if not is_practice(recipe):
        return ()
    profiles = (recipe.get(OBJECTIVE) or {}).get("profiles") or ()
    return tuple(
        Agent(str(each.get("role")), str(each.get("prompt") or ""), bool(each.get("with_answer")))
        for each in profiles
        if isinstance(each, Mapping)
    )


def roles(recipe: Mapping[str, Any]) -> list[str]:
    """Of the team, in order."""
    return [agent.role for agent in team(recipe)]


def latest(rows: Sequence[Any]) -> Json:
    """The last reward, share solved, distance to the base and pass rate; rows of `metrics_curve`."""
    found: Json = {}
    for row in rows:
        for name, metric in LATEST.get(row.kind, {}).items():
            if is_figure(value := row.metrics.get(metric)):
                found[name] = value
    return found


def standing(value: Json, track: str, number: int) -> Json:
    """The last reward and pass rate of a track's round, from the snapshot; None where none was logged."""
    for row in (value.get("operations") or {}).get("practice", ()):
        if (row["track"], row["round"]) == (track, number):
            return {
                "reward": (row["metrics"] or {}).get("reward"),
                "solved": (row["evaluated"] or {}).get("solved"),
            }
    return {"reward": None, "solved": None}


def episodes(rows: Sequence[Any]) -> list[Shown]:
    """From rows of `page_episodes`, by iteration, the latest first."""
    return [Shown(iteration, tuple(each)) for iteration, each in groupby(rows, lambda row: row.iteration)]
